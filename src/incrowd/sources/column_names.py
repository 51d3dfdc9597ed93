"""What the name of a column says about what is in it."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|%")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ONE_PERSON = _set(
    "email mail phone phonenumber telephone telefon tel mobile handy fax ssn passport iban address adresse direccion "
    "indirizzo street strasse rue calle firstname lastname fullname surname forename vorname nachname nom prenom "
    "apellido apellidos nombre cognome username login url ip uuid guid vin mrn nino bsn cpf dni nif kontonummer "
    "accountnumber cardnumber signature photo cookie latitude longitude lat lon lng gps"
)
_NUMBERED = _set("id ids identifier key nr no num number nummer numero ref reference index rowid name")
# Of these, what is the same in all rows of a person and hardly in those of two; many share a name or a street.
_IDENTITY = _set(
    "id ids identifier key nr no num number nummer numero kundennummer patientennummer email mail phone phonenumber "
    "telephone telefon mobile handy ssn passport iban username login uuid guid vin mrn nino bsn cpf dni nif "
    "kontonummer accountnumber cardnumber cookie"
)
_HOUSEHOLD = _set("household haushalt hogar menage foyer hh hid hhid family")
_PEOPLE = _HOUSEHOLD | _set(
    "person people patient patienten paciente participant proband respondent subject customer client kunde kunden user "
    "member mitglied pupil student schueler employee worker citizen resident account konto card passenger driver donor "
    "applicant insured versicherte borrower individual beneficiary"
)
# Words for people cut short, which go before a number only.
_CUT = _set("p pers pat ppt resp subj usubj cust cl memb mem acct emp stud stu case indiv ind ben u hh h serial")
_NUMBERS = _set("id ids identifier key nr no num number nummer numero ref code hash pseudonym token")
_SENSITIVE = _set(
    "health disease diagnos illness condition symptom treatment therap medic medikament drug hiv cancer disab pregnan "
    "mental icd injur krank gesund maladie sante enfermedad salud income salary wage earning pay wealth debt loan "
    "credit balance bal amt amount bill pension benefit einkommen gehalt lohn revenu salaire ingreso salario religi "
    "faith belief konfession politic party partei vote union sexual orientation crime criminal offence offense convict "
    "arrest genetic dna default"
)
_QUANTITIES = _set(
    "weight height size price cost amount income salary wage earning balance bal amt area distance duration score "
    "count numberof total sum hours sales turnover population gewicht preis betrag einkommen gehalt"
)
_WEIGHTS = _set(
    "wt wgt pwgt fwgt fnlwgt finalwgt pweight fweight finalweight surveyweight sampleweight perwt hhwt pwgtp wgtp "
    "gewichtung gewichtungsfaktor hochrechnungsfaktor designgewicht ponderation poids"
)
_SOUGHT = _set(
    "region state county province country nation birthplace land bundesland canton district urban marital marstat "
    "marriage familienstand race racea ethnic ethnicity hispanic education educ school schooling degree bildung "
    "occupation job work workclass employment employed labour labor beruf industry sector"
)
TOPICS = {
    "age": _set("age ages alter edad leeftijd idade eta"),
    "percent": _set("percent percentage pct prozent %"),
    "month": _set("month monat mois mes"),
    "day": _set("day tag jour dia"),
    "hour": _set("hour stunde heure hora"),
    "year": _set("year yr yob jahr annee ano birthyear"),
    "date": _set("date datum fecha data dob birthdate geburtsdatum geburtstag aufnahmedatum"),
    "birth": _set("born birth birthdate dob geburt geburtsdatum geburtsjahr birthyear yob"),
    "sex": _set("sex gender geschlecht sexe sexo genero genre"),
    "zip": _set("zip zipcode postcode postal postalcode plz cap cep"),
}


def words_of(name: str) -> frozenset[str]:
    """The words in a name, in small letters without accents, and all of them joined: firstName, first_name, FIRST-NAME.

    Joined words are there too, each with the next: a phone number is a phonenumber.
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    parts = [part.lower() for part in _PARTS.findall(plain)]
    return frozenset(parts) | {a + b for a, b in pairwise(parts)}


def says_person(words: frozenset[str]) -> bool:
    """Whether a column so named points at one person, whatever is in it."""
    return bool(words & _ONE_PERSON) or words == {"name"}


def says_number(words: frozenset[str]) -> bool:
    """Whether a column so named may number people, if it tells many apart."""
    return bool(words & _NUMBERED) and "numberof" not in words


def says_identity(words: frozenset[str]) -> bool:
    """Whether a column so named may say whose a row is, in a table with several rows of a person.

    A name that is nothing but a word for people may, too.
    """
    if "numberof" in words:
        return False
    return bool(words & _IDENTITY) or numbers_people(words) or (len(words) == 1 and bool(words & _PEOPLE))


def says_people(words: frozenset[str]) -> bool:
    """Whether a column so named is about people or households, and not about orders or wards."""
    return numbers_people(words) or any(word.startswith(stem) for word in words for stem in _PEOPLE)


def says_household(words: frozenset[str]) -> bool:
    """Whether a column so named is about households."""
    return any(word.startswith(stem) for word in words for stem in _HOUSEHOLD)


def numbers_people(words: frozenset[str]) -> bool:
    """Whether a column so named numbers people or households, and says nothing else: patient_id, hhid, customer no."""
    whose = _PEOPLE | _CUT
    joined = {w for w in words for number in _NUMBERS if w.endswith(number) and w.removesuffix(number) in whose}
    return bool(joined) and words - joined <= whose | _NUMBERS


def says_sensitive(words: frozenset[str]) -> bool:
    """Whether a column so named is about what others want to know."""
    return _begins(words, _SENSITIVE)


def says_quantity(words: frozenset[str]) -> bool:
    """Whether a column so named measures something, so that many different values are no wonder."""
    return _begins(words, _QUANTITIES)


def says_weight(words: frozenset[str]) -> bool:
    """Whether a column so named may say how many people a record of a survey stands for."""
    return bool(words & _WEIGHTS) or any(word.startswith("wt") for word in words)


def is_weight(words: frozenset[str]) -> bool:
    """Whether a column so named can hardly be anything but a survey weight."""
    return bool(words & (_WEIGHTS - {"wt", "wgt", "poids"}))


def says_sought(words: frozenset[str]) -> bool:
    """Whether a column so named is one that most users of a survey ask for."""
    return bool(words & _SOUGHT)


def may_weigh(words: frozenset[str]) -> bool:
    """Whether a column so named is about weights, of people or of records."""
    return bool(words & {"weight", "weights", "gewicht", "gewichte", "peso", "pesos"})


def says(topic: str, words: frozenset[str]) -> bool:
    """Whether a column so named is about age, percent, month, day, hour, year, a date, birth, sex or zip."""
    return bool(words & TOPICS[topic])


def _begins(words: frozenset[str], stems: frozenset[str]) -> bool:
    """Whether a word is one of the stems, or begins with one that is long enough to be told by it."""
    return any(word == stem or (len(stem) > 4 and word.startswith(stem)) for word in words for stem in stems)
