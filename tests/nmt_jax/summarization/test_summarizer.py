from nmt_jax.summarization.summarizer import summarize


def test_summaries_keep_the_order_of_the_text_and_the_limits():
    text = "A cat sat.\tRain fell.\tA cat sat and ate.\tA cat ate."
    ((sentences, chosen),) = summarize([text], method="textrank", num_sentences=2)
    assert sentences == text.split("\t")
    assert chosen == sorted(chosen)
    assert len(chosen) == 2
    assert 1 not in chosen  # shares no word with the others
    assert [chosen for _, chosen in summarize([text, ""], method="lead", num_words=5)] == [[0, 1], []]
