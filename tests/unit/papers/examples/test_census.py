"""The census example: the same people everywhere, as the tables say, inside the domains its policy declares."""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import InputError, ParameterError
from incrowd.hierarchy import codings
from incrowd.papers.examples import _weights as tables
from incrowd.papers.examples import census as example
from incrowd.papers.examples._population import Choice, Spread, _aliases
from incrowd.papers.examples.census import census_batches, census_policy, write_census
from incrowd.policy import Policy

# Whoever changes the people on purpose changes this too.
FIRST_2000 = "e58893550ba18f82bcc4f11cc5b5ad33be64834eab5a98cf32da3d7457d9fa93"
MANY = 300_000
COLUMNS = [
    "person_id",
    "age",
    "sex",
    "marital_status",
    "race",
    "education",
    "occupation",
    "income",
    "region",
    "zip",
    "condition",
]
PUBLISHED = ["age", "sex", "marital_status", "education", "income", "zip", "condition"]


def census(rows, **options):
    return pa.Table.from_batches(list(census_batches(rows, **options)))


def texts(table):
    """The same table with text in place of dictionaries."""
    plain = [(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(plain)).combine_chunks()


@pytest.fixture(scope="module")
def people():
    """Integer codes of many people, −1 for an unanswered question."""
    parts = [example._country().people(first, first + 50_000, example.SEED) for first in range(0, MANY, 50_000)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


# ------------------------------------------------------------------------------------- the same everywhere


def test_the_first_people_never_change(tmp_path):
    table, _ = write_census(tmp_path / "census.csv", 2000)
    assert hashlib.sha256(table.read_bytes()).hexdigest() == FIRST_2000


def test_the_size_of_the_batches_changes_nothing():
    whole = texts(census(5000))
    for batch in (1, 7, 999, 4999, 5000, 10**9):
        rows = 50 if batch == 1 else 5000
        assert texts(census(rows, batch=batch)).equals(whole.slice(0, rows)), batch


def test_batches_have_the_size_asked_for():
    assert [len(batch) for batch in census_batches(25, batch=10)] == [10, 10, 5]
    assert list(census_batches(0)) == []


def test_fewer_rows_are_the_first_of_more():
    assert texts(census(1000)).equals(texts(census(10_000)).slice(0, 1000))


def test_people_far_down_the_table_come_out_the_same_in_any_batch():
    start = 99_999_000
    one = example._record_batch(start, start + 1000, example.SEED)
    two = [example._record_batch(a, a + 500, example.SEED) for a in (start, start + 500)]
    assert pa.Table.from_batches([one]).combine_chunks().equals(pa.Table.from_batches(two).combine_chunks())


def test_another_seed_is_another_country_of_the_same_kind():
    ours, other = texts(census(2000)), texts(census(2000, seed=7))
    assert not ours.equals(other)
    assert ours.schema == other.schema


def test_the_columns_and_their_identifier():
    table = texts(census(300))
    assert table.column_names == COLUMNS
    assert table["person_id"].to_pylist() == list(range(1, 301))
    assert table.schema.field("zip").type == pa.string()
    assert pa.types.is_integer(table.schema.field("income").type)


@pytest.mark.parametrize("wrong", [{"rows": -1}, {"rows": 2.5}, {"rows": 5, "batch": 0}, {"rows": 5, "seed": -1}])
def test_impossible_sizes_are_refused_at_once(wrong):
    with pytest.raises(ParameterError):
        census_batches(**wrong)


# ------------------------------------------------------------------------------------- exact draws


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40).filter(any))
def test_alias_tables_hold_the_weights(weights):
    slots = 1 << (len(weights) - 1).bit_length()
    full = 1 << 24
    mass = [0] * slots
    for slot, (threshold, alias) in enumerate(zip(*_aliases(weights, slots), strict=True)):
        assert 0 <= threshold <= full
        mass[slot] += threshold
        mass[alias] += full - threshold
    assert sum(mass) == slots * full
    for weight, got in zip(weights + [0] * (slots - len(weights)), mass, strict=True):
        assert abs(Fraction(got, slots * full) - Fraction(weight, sum(weights))) <= Fraction(1, full)
        assert weight > 0 or got == 0


def test_a_choice_uses_each_draw_as_the_alias_tables_say():
    weights = [[1, 2, 5], [7, 0, 1]]
    choice = Choice(weights)
    # Every slot with every 12th bit pattern of the fraction: 4 slots × 4096 fractions, all equally likely.
    draws = (np.arange(4096, dtype=np.uint32)[:, None] << 20 | np.arange(4, dtype=np.uint32)).ravel()
    for context, table in enumerate(weights):
        picked = choice.pick(draws, np.full(draws.shape, context))
        assert np.bincount(picked, minlength=3).tolist() == [w * len(draws) // 8 for w in table]


def test_a_spread_goes_straight_from_corner_to_corner():
    spread = Spread([{0: 10, 500_000: 20, 1_000_000: 1020}, {0: 0, 250_000: 0, 1_000_000: 3000}])
    draws = np.array([0, 2**30, 2**31, 3 * 2**30, 2**32 - 1], np.uint32)
    assert spread.pick(draws, np.zeros(5, np.int64)).tolist() == [10, 15, 20, 520, 1019]
    assert spread.pick(draws, np.ones(5, np.int64)).tolist() == [0, 0, 1000, 2000, 2999]


def deviation(codes, contexts, weights):
    """The largest deviation from the expected number of people over all contexts and values, in standard deviations."""
    worst = 0.0
    for context, table in enumerate(weights):
        of_these = codes[contexts == context]
        seen = np.bincount(of_these, minlength=len(table))
        share = np.array(table) / sum(table)
        expected = len(of_these) * share
        assert not seen[share == 0].any()
        common = expected > 20
        spread = np.sqrt(expected * (1 - share)) + (share == 1)
        worst = max(worst, float(np.max(np.abs(seen - expected)[common] / spread[common], initial=0.0)))
    return worst


def bands(ages, starts):
    return np.searchsorted(list(starts), ages, side="right") - 1


def test_people_are_drawn_as_the_tables_say(people):
    age, sex = people["age"], people["sex"]
    pyramid = tables.pyramid("female") + tables.pyramid("male")
    assert len(pyramid) == 212
    assert deviation(age + 106 * sex, np.zeros(MANY, int), [pyramid]) < 5

    marriages = [table for both in tables.MARRIAGES.values() for table in both]
    assert deviation(people["marital_status"], 2 * bands(age, tables.MARRIAGES) + sex, marriages) < 5
    assert deviation(people["marital_status"], 2 * bands(age, tables.MARRIAGES) + 1 - sex, marriages) > 20

    assert deviation(people["race"], people["region"], [region.races for region in tables.REGIONS]) < 5

    # Women and cities deviate from the table of schooling by design; men elsewhere follow it.
    plain = (sex == 1) & (people["education"] >= 0) & ~np.array([r.city for r in tables.REGIONS])[people["region"]]
    schooling = list(tables.SCHOOLING.values())
    assert deviation(people["education"][plain], bands(age, tables.SCHOOLING)[plain], schooling) < 5
    assert deviation(people["education"][~plain & (people["education"] >= 0)],
                     bands(age, tables.SCHOOLING)[~plain & (people["education"] >= 0)], schooling) > 20  # fmt: skip

    stated = people["occupation"] >= 0
    activity = [table for both in tables.ACTIVITY.values() for table in both]
    at_work = np.minimum(people["occupation"], len(tables.STATUSES))
    assert deviation(at_work[stated], (2 * bands(age, tables.ACTIVITY) + sex)[stated], activity) < 5
    jobs = [table for both in tables.JOBS_BY_EDUCATION for table in both]
    working = (people["occupation"] >= len(tables.STATUSES)) & (people["education"] >= 0)
    job = people["occupation"] - len(tables.STATUSES)
    assert deviation(job[working], (2 * people["education"] + sex)[working], jobs) < 5

    men = (sex == 1) & ((people["education"] >= tables.BASIC) | (age < tables.ADULT))
    assert deviation(people["condition"][men], bands(age, tables.HEALTH)[men], list(tables.HEALTH.values())) < 5


# ------------------------------------------------------------------------------------- a country that makes sense


def test_children_have_neither_work_nor_income_nor_a_spouse(people):
    child = people["age"] < 15
    assert child.mean() > 0.1
    assert set(people["occupation"][child]) == {-1, tables.OCCUPATIONS.index("under 15")}
    assert set(people["income"][child]) == {-1, 0}
    assert set(people["marital_status"][child]) == {tables.MARITAL.index("never married")}
    assert not (people["occupation"][~child] == tables.OCCUPATIONS.index("under 15")).any()
    assert people["education"][people["age"] < 6].max() == 0
    assert people["education"][people["age"] < 15].max() < tables.EDUCATION.index("some college")


def test_columns_depend_on_each_other(people):
    age, income = people["age"], people["income"]
    widowed = people["marital_status"] == tables.MARITAL.index("widowed")
    assert age[widowed].mean() > age.mean() + 25
    assert people["sex"][widowed].mean() < 0.35  # mostly women

    prime = (age >= 30) & (age < 60) & (income >= 0)
    medians = [np.median(income[prime & (people["education"] == level)]) for level in (2, 3, 6, 7, 8)]
    assert medians == sorted(medians)
    assert medians[-1] > 3 * medians[0]
    by_region = {r.name: np.median(income[prime & (people["region"] == i)]) for i, r in enumerate(tables.REGIONS)}
    assert by_region["Capital"] > 1.3 * by_region["Northmoor"]
    assert np.median(income[prime & (people["sex"] == 1)]) > np.median(income[prime & (people["sex"] == 0)])

    elderly = [np.mean(age[people["region"] == i] >= 65) for i in range(len(tables.REGIONS))]
    assert elderly[8] > 1.5 * elderly[6]  # the Sun Coast against the Capital
    dementia = people["condition"] == tables.CONDITIONS.index("dementia")
    assert age[dementia].mean() > 70
    healthy = people["condition"] == 0
    assert healthy[age < 15].mean() > healthy[age >= 75].mean() + 0.4


def test_ages_cover_a_life(people):
    assert people["age"].min() == 0
    assert 100 < people["age"].max() <= tables.OLDEST
    assert 0.15 < np.mean(people["age"] >= 65) < 0.2
    assert 0.50 < np.mean(people["sex"] == tables.SEXES.index("female")) < 0.515


def test_incomes_are_rounded_and_have_a_long_tail(people):
    stated = people["income"][people["income"] >= 0]
    assert not (stated % 100).any()
    adult = people["income"][(people["age"] >= 25) & (people["income"] >= 0)]
    assert 30_000 < np.median(adult) < 50_000
    assert np.mean(adult) > 1.2 * np.median(adult)
    assert 1 < np.sum(adult > 50 * np.median(adult)) < len(adult) / 1000
    assert stated.max() < 2**31


def test_zip_codes_lie_in_regions_and_have_very_different_sizes(people):
    codes = [place.code for place in tables.ZIPS]
    assert len(set(codes)) == len(codes) <= 200
    assert all(len(code) == 5 and code.isdigit() and int(code[0]) == place.region
               for code, place in zip(codes, tables.ZIPS, strict=True))  # fmt: skip
    assert any(code.startswith("00") for code in codes)
    assert np.array_equal(np.array([int(code[0]) for code in codes])[people["zip"]], people["region"])
    sizes = np.bincount(people["zip"], minlength=len(codes))
    assert 0 < sizes.min() < sizes.max() / 10


def test_about_one_percent_of_three_questions_is_unanswered(people):
    for name, codes in people.items():
        share = np.mean(codes < 0)
        if name in ("education", "occupation", "income"):
            assert 0.008 < share < 0.014, name
        else:
            assert share == 0, name
    manager = people["occupation"] == tables.OCCUPATIONS.index("manager")
    assert np.mean(people["income"][manager] < 0) > 1.5 * np.mean(people["income"] < 0)
    both = np.mean((people["education"] < 0) & (people["income"] < 0))
    assert both < 0.0004  # unanswered independently of each other


def test_rare_people_exist_and_are_rare(people):
    widowed = people["marital_status"] == tables.MARITAL.index("widowed")
    rare = {
        "widowed before 20": widowed & (people["age"] < 20),
        "centenarians": people["age"] >= 100,
        "millionaires": people["income"] >= 1_000_000,
        "Pacific Islanders in Northmoor": (people["race"] == 4) & (people["region"] == 3),
        "doctors before 30": (people["education"] == 9) & (people["age"] < 30),
    }
    for what, who in rare.items():
        assert 0 < who.sum() < MANY / 500, what
    key = np.zeros(MANY, np.int64)
    for name in ("age", "sex", "marital_status", "race", "education", "zip"):
        key = key * 256 + people[name] + 1
    _, counts = np.unique(key, return_counts=True)
    assert 0.3 < np.sum(counts == 1) / MANY < 0.9  # much of the table is unique, as in real ones


# ------------------------------------------------------------------------------------- files


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path)
    convert = pacsv.ConvertOptions(column_types={"zip": pa.string()}, strings_can_be_null=True, null_values=[""])
    return pacsv.read_csv(path, convert_options=convert)


def test_all_formats_hold_the_same_people(tmp_path):
    rows = example.BATCH + 100
    wanted = texts(census(rows))
    for name in ("a.parquet", "a.csv", "a.csv.gz"):
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir()
        seen = []
        table, policy = write_census(folder / name, rows, seen.append)
        assert (table, policy) == (folder / name, folder / "a.yaml")
        assert sorted(folder.iterdir()) == sorted([table, policy])
        found = read(table)
        assert found.column_names == COLUMNS
        assert found.cast(wanted.schema).combine_chunks().equals(wanted), name
        assert seen == [example.BATCH, rows]


def test_parquet_has_plain_columns_and_few_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(example, "BATCH", 1000)
    monkeypatch.setattr(example, "_ROW_GROUP", 3)
    monkeypatch.setattr(example, "census_batches", lambda rows: census_batches(rows, batch=1000))
    table, _ = write_census(tmp_path / "c.parquet", 7500)
    file = pq.ParquetFile(table)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [3000, 3000, 1500]
    assert file.schema_arrow.field("zip").type == pa.string()
    assert file.read().equals(texts(census(7500)))


def test_unanswered_questions_are_empty_in_csv_and_null_in_parquet(tmp_path):
    lines = write_census(tmp_path / "c.csv", 3000)[0].read_text().splitlines()
    fields = [line.split(",") for line in lines]
    assert fields[0] == COLUMNS
    assert {len(line) for line in fields} == {len(COLUMNS)}
    table = pq.read_table(write_census(tmp_path / "p.parquet", 3000)[0])
    for i, name in enumerate(COLUMNS):
        assert sum(line[i] == "" for line in fields[1:]) == table[name].null_count, name
    assert table["income"].null_count > 0


def test_files_are_not_overwritten_unless_told_to(tmp_path):
    (tmp_path / "census.yaml").write_text("edited by hand")
    with pytest.raises(InputError) as caught:
        write_census(tmp_path / "census.csv", 10)
    assert caught.value.code == "output-exists"
    assert [path.name for path in tmp_path.iterdir()] == ["census.yaml"]
    assert (tmp_path / "census.yaml").read_text() == "edited by hand"
    write_census(tmp_path / "census.csv", 10, overwrite=True)
    assert (tmp_path / "census.yaml").read_text() == census_policy("census.csv", 10)


@pytest.mark.parametrize("name", ["census", "census.txt", ".csv", "census.csv.zip", "census.gz"])
def test_other_formats_are_refused(tmp_path, name):
    with pytest.raises(InputError) as caught:
        write_census(tmp_path / name, 10)
    assert caught.value.code == "output-format"
    assert not list(tmp_path.iterdir())


def test_endings_are_read_in_any_case(tmp_path):
    assert [p.name for p in write_census(tmp_path / "C.CSV", 10)] == ["C.CSV", "C.yaml"]


@pytest.mark.parametrize("rows", [0, -5])
def test_a_census_has_people(tmp_path, rows):
    with pytest.raises(ParameterError):
        write_census(tmp_path / "census.csv", rows)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError) as caught:
        write_census(tmp_path / "nowhere" / "census.csv", 10)
    assert caught.value.code == "output-unwritable"


def test_nothing_is_left_behind_when_writing_stops(tmp_path):
    def stop(_):
        raise KeyboardInterrupt

    for name in ("c.csv", "c.csv.gz", "c.parquet"):
        with pytest.raises(KeyboardInterrupt):
            write_census(tmp_path / name, 10, stop)
        assert not list(tmp_path.iterdir()), name


# ------------------------------------------------------------------------------------- the policy


def inside(values, domain):
    """Whether every value that is there lies in a domain as a policy declares it."""
    values = [value for value in values if value is not None]
    if isinstance(domain, list):
        return set(values) <= set(domain)
    if "cuts" in domain:
        return all(domain["cuts"][0] <= value <= domain["cuts"][-1] for value in values)
    return all(domain["from"] <= value <= domain["to"] for value in values)


def leaves(tree):
    return [leaf for branch in (tree.values() if isinstance(tree, dict) else tree)
            for leaf in ([branch] if isinstance(branch, str) else leaves(branch))]  # fmt: skip


def test_the_policy_lies_beside_the_table_and_fits_it(tmp_path):
    table, policy = write_census(tmp_path / "my census.csv.gz", 20_000)
    content = yaml.safe_load(policy.read_text(encoding="utf-8"))
    assert policy.name == "my census.yaml"
    assert (policy.parent / content["data"]["path"]).samefile(table)
    attributes = content["attributes"]
    assert set(attributes) == set(COLUMNS)
    assert attributes["person_id"] == "drop"
    columns = texts(census(20_000))
    assert [name for name in attributes if attributes[name] != "drop"] == PUBLISHED
    for name in PUBLISHED:
        attribute, values = attributes[name], columns[name]
        assert inside(pc.unique(values).to_pylist(), attribute["domain"]), name
        assert values.null_count == 0 or attribute["missing"] == "keep", name
        taxonomy = attribute.get("hierarchy", {}).get("taxonomy")
        if taxonomy:
            assert sorted(leaves(taxonomy)) == sorted(attribute["domain"]), name
    assert attributes["marital_status"]["domain"] == list(tables.MARITAL)
    assert attributes["education"]["domain"] == list(tables.EDUCATION)
    assert attributes["condition"]["domain"] == list(tables.CONDITIONS)
    assert attributes["zip"]["domain"] == [place.code for place in tables.ZIPS]
    assert attributes["income"]["domain"]["cuts"][-1] == math.inf
    release = content["release"]
    assert isinstance(release["delta"], float)
    assert release["recoding"] == "tree"  # which keeps most of a table as wide as this one
    assert max(map(len, policy.read_text().splitlines())) <= 120


@pytest.mark.parametrize("rows", [1, 1000, 10**5, 10**6, 10**8])
def test_delta_stays_well_below_one_person(rows):
    delta = yaml.safe_load(census_policy("c.csv", rows))["release"]["delta"]
    assert 0 < delta <= min(1e-6, 0.1 / rows)


@pytest.mark.parametrize(
    "name", ["a: b #c.csv", 'quo"te.csv', "{rows}.csv", "Zählung.csv", "007.csv", "back\\slash.csv"]
)
def test_odd_file_names_survive_in_the_policy(name):
    assert yaml.safe_load(census_policy(name, 10))["data"]["path"] == name


def test_the_policy_can_be_read(tmp_path):
    table, path = write_census(tmp_path / "census.csv", 100)
    policy = Policy.from_file(path)
    assert policy.resolve(policy.data.path) == table
    assert list(policy.published) == PUBLISHED
    assert policy.attributes["condition"].role == "sensitive"
    assert policy.release.delta == 1e-6


def test_the_policy_covers_every_value(tmp_path):
    _, path = write_census(tmp_path / "census.parquet", 20_000)
    columns = texts(census(20_000))
    built = codings(Policy.from_file(path))
    assert [attribute.name for attribute in built] == PUBLISHED
    for name, coding, _ in built:
        assert coding.other is None
        values = columns[name]
        assert values.null_count == 0 or coding.missing == "keep"
        domain = coding.domain
        if domain.kind == "bins":
            assert pc.min(values).as_py() >= domain.cuts[0]
            assert pc.max(values).as_py() <= domain.cuts[-1]
        else:
            found = {str(value) for value in pc.unique(values).to_pylist() if value is not None}
            assert found <= set(domain.labels), name


def test_the_levels_of_the_policy():
    built = {attribute.name: attribute.hierarchy for attribute in codings(Policy.from_text(census_policy("c.csv", 10)))}
    groups = {name: [len(level.labels) for level in hierarchy.levels] for name, hierarchy in built.items()}
    districts = sum(len(region.districts) for region in tables.REGIONS)
    assert groups == {
        "age": [120, 24, 12, 6, 3, 1],
        "sex": [2, 1],
        "marital_status": [6, 2, 1],
        "education": [11, 5, 3, 1],  # one more than the names: missing
        "income": [13, 6, 4, 1],
        "zip": [len(tables.ZIPS), districts, len(tables.REGIONS), 1],
        "condition": [12, 1],
    }
    assert built["zip"].levels[2].labels[0] == "0****"
