use arrow_schema::Field;

/// What the metadata of a put's field says otherwise than that of the dataset's field.
pub(crate) struct Changed {
    /// What the dataset's says; `nothing` if it says nothing.
    pub expected: String,
    /// What the put's says.
    pub got: String,
}

impl Changed {
    /// Of one key; a put that says nothing of it changes nothing.
    pub fn find(key: &str, known: &Field, incoming: &Field) -> Option<Self> {
        let got = incoming.metadata().get(key)?.clone();
        let expected = known.metadata().get(key).cloned();
        (expected.as_ref() != Some(&got)).then(|| Changed {
            expected: expected.unwrap_or_else(|| "nothing".into()),
            got,
        })
    }
}
