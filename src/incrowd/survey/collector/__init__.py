"""A small service that takes in records which respondents have randomised themselves, and nothing about the senders."""
