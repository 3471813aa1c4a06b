import pytest

from metrics_jax.prediction.entities import Entity, entities, entity_f1


def test_both_schemes_give_the_same_entities():
    expected = [Entity("PER", 0, 2), Entity("LOC", 3, 4), Entity("LOC", 4, 5)]
    assert entities(["B-PER", "I-PER", "O", "B-LOC", "B-LOC"]) == expected
    assert entities(["I-PER", "I-PER", "O", "I-LOC", "B-LOC"]) == expected


def test_another_type_and_an_i_tag_without_a_beginning_begin_an_entity():
    assert entities(["I-PER", "I-LOC", "O", "I-LOC"]) == [Entity("PER", 0, 1), Entity("LOC", 1, 2), Entity("LOC", 3, 4)]
    assert entities([]) == entities(["O", "O"]) == []


def test_counts_by_hand():
    """Three true entities, two predicted, one of them right: P 1/2, R 1/3, F 2/5."""
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG"]]
    predicted = [["B-PER", "I-PER", "O", "B-ORG"], ["O", "O"]]
    scores = entity_f1(predicted, true)
    assert vars(scores[""]) == pytest.approx({"precision": 1 / 2, "recall": 1 / 3, "f1": 2 / 5})
    assert (scores["PER"].f1, scores["LOC"].f1, scores["ORG"].f1) == (1.0, 0.0, 0.0)
    assert sorted(scores) == ["", "LOC", "ORG", "PER"]


def test_part_of_an_entity_is_wrong():
    scores = entity_f1([["B-PER", "O"]], [["B-PER", "I-PER"]])
    assert scores[""].f1 == 0.0


def test_no_entities():
    assert entity_f1([["O"]], [["O"]])[""].f1 == 0.0


def test_bad_input():
    with pytest.raises(ValueError, match="tag 'PER' is not one of"):
        entities(["PER"])
    with pytest.raises(ValueError, match="tag 'B-' is not one of"):
        entities(["B-"])
    with pytest.raises(TypeError, match="a sequence of strings, not a single string"):
        entity_f1(["OO"], ["OO"])
    with pytest.raises(ValueError, match="no sentences"):
        entity_f1([], [])
    with pytest.raises(ValueError, match="1 hypotheses but 2 references"):
        entity_f1([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="sentence 0 has 2 tags, but 1 predicted ones"):
        entity_f1([["O"]], [["O", "O"]])
