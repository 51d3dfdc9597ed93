"""What names say."""

import pytest

from incrowd.sources.column_names import (
    numbers_people,
    says,
    says_household,
    says_identity,
    says_number,
    says_person,
    says_quantity,
    says_sensitive,
    words_of,
)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("firstName", "firstname"),
        ("first_name", "firstname"),
        ("FIRST-NAME", "firstname"),
        ("Straße", "strasse"),
        ("Prénom", "prenom"),
        ("BILL_AMT1", "amt"),
        ("patientID", "id"),
        ("body %", "%"),
    ],
)
def test_words_are_found_however_they_are_joined(name, word):
    assert word in words_of(name)


@pytest.mark.parametrize("name", ["email", "E-Mail", "phone number", "SSN", "IBAN", "home_address", "name", "lastName"])
def test_names_that_point_at_one_person(name):
    assert says_person(words_of(name))


@pytest.mark.parametrize("name", ["sex", "country name", "shipment", "nominal", "", "日付"])
def test_names_that_do_not(name):
    assert not says_person(words_of(name))


def test_numbers_of_things_are_not_numbers_of_people():
    assert says_number(words_of("customer_id"))
    assert not says_number(words_of("number_of_children"))
    assert not says_number(words_of("width"))


@pytest.mark.parametrize(
    "name", ["income", "Diagnosis", "health_status", "religion", "Einkommen", "salary-class", "PAY_0"]
)
def test_sensitive_names(name):
    assert says_sensitive(words_of(name))


@pytest.mark.parametrize("name", ["payload", "sex", "region", "ballot box"])
def test_names_that_are_not_sensitive(name):
    assert not says_sensitive(words_of(name))


def test_topics():
    assert says("age", words_of("Age"))
    assert not says("age", words_of("stage"))
    assert says("year", words_of("birth_year"))
    assert says("zip", words_of("zipCode"))
    assert says_quantity(words_of("body_weight"))


NUMBERED = ["patient_id", "PatientID", "patientid", "hid", "hhid", "pid", "userid", "user_id", "subjid", "USUBJID"]
NUMBERED += ["caseid", "customer-no", "Kundennummer", "hh_code", "SERIALNO", "memberid", "acctno"]
PEOPLE = ["patient", "person", "household", "customer", "member", "user", "respondent", "account"]


@pytest.mark.parametrize("name", [*NUMBERED, *PEOPLE, "ID", "e-mail", "mrn", "ward_id", "customer_segment_id"])
def test_names_that_say_whose_a_row_is(name):
    assert says_identity(words_of(name))


@pytest.mark.parametrize(
    "name",
    [
        "name",
        "first_name",
        "street",
        "numberof_visits",
        "age",
        "idea",
        "latitude",
        "patient_type",
        "household_size",
        "humid",
        "paid",
        "valid",
    ],
)
def test_names_that_do_not_say_whose_a_row_is(name):
    assert not says_identity(words_of(name))


@pytest.mark.parametrize("name", NUMBERED)
def test_names_that_number_people_and_say_nothing_else(name):
    assert numbers_people(words_of(name))


@pytest.mark.parametrize("name", [*PEOPLE, "ID", "ward_id", "order_no", "customer_segment_id", "part_no", "pid_type"])
def test_names_that_do_not_number_people(name):
    assert not numbers_people(words_of(name))


def test_households_are_told_from_people():
    assert [says_household(words_of(name)) for name in ("hhid", "household_id", "hid", "pid", "person_id")] == [
        True,
        True,
        True,
        False,
        False,
    ]
