"""Respondents randomise their own answers, before anything leaves their device.

This is the second scenario of Ikarashi, Kikuchi, Chida and Takahashi: nobody ever has the true table. A *questionnaire*
is a public file with the questions, the possible answers, how often an answer is kept, and the promise. A `Randomizer`
checks that the promise follows from the rest and draws the record to be sent. It needs the standard library and, for
signatures, `cryptography`; nothing else is imported. `randomizer.js` beside it is the same for browsers and node.
"""

from incrowd.survey.questionnaire import Question, Questionnaire
from incrowd.survey.randomizer import Randomizer

__all__ = ["Question", "Questionnaire", "Randomizer"]
