//! Files in which each row begins with its own length: `.fvecs` and `.ivecs`, of the TEXMEX corpus (Jégou et al., 2011).
//!
//! ```text
//! elements: i32 | that many f32 or i32 | elements: i32 | …      little-endian, the same number in each row
//! ```

const WORD: usize = 4;

/// The dimension and the elements, rows one after the other; or what is wrong.
pub fn read(file: &[u8]) -> Result<(usize, Vec<u8>), String> {
    let dim_at = |row: &[u8]| -> Option<usize> {
        let word = row.first_chunk::<WORD>()?;
        usize::try_from(i32::from_le_bytes(*word)).ok()
    };
    let dim = dim_at(file)
        .filter(|dim| *dim > 0)
        .ok_or("does not begin with the number of elements of its first row")?;
    let row_bytes = dim.saturating_add(1).saturating_mul(WORD);
    if !file.len().is_multiple_of(row_bytes) {
        return Err(format!(
            "has {} bytes, which are no whole number of rows of {dim} elements",
            file.len()
        ));
    }
    let mut elements = Vec::with_capacity(file.len() / row_bytes * dim * WORD);
    for (number, row) in file.chunks_exact(row_bytes).enumerate() {
        if dim_at(row) != Some(dim) {
            return Err(format!(
                "row {number} has not {dim} elements like those before it"
            ));
        }
        elements.extend_from_slice(&row[WORD..]);
    }
    Ok((dim, elements))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of rows of words.
    pub fn file(rows: &[&[i32]]) -> Vec<u8> {
        let row = |row: &&[i32]| -> Vec<u8> {
            let dim = i32::try_from(row.len()).expect("short");
            let words = [dim].into_iter().chain(row.iter().copied());
            words.flat_map(i32::to_le_bytes).collect()
        };
        rows.iter().flat_map(row).collect()
    }

    #[test]
    fn rows_come_without_their_lengths() {
        let (dim, elements) = read(&file(&[&[1, 2, 3], &[4, 5, 6]])).expect("valid");
        let expected: Vec<u8> = (1..=6).flat_map(i32::to_le_bytes).collect();
        assert_eq!((dim, elements), (3, expected));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let told = |file: &[u8]| read(file).expect_err("wrong");
        assert!(told(&[]).contains("begin"));
        assert!(told(&file(&[&[]])).contains("begin"));
        assert!(told(&(-1i32).to_le_bytes()).contains("begin"));
        assert!(told(&i32::MAX.to_le_bytes()).contains("whole number"));
        assert!(told(&file(&[&[1, 2], &[1, 2, 3, 4, 5]])).contains("row 1"));
        assert!(told(&file(&[&[1, 2], &[1]])).contains("whole number"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..100), dim in 1i32..5, real: bool) {
            if real && bytes.len() >= WORD {
                bytes[..WORD].copy_from_slice(&dim.to_le_bytes());
            }
            if let Ok((dim, elements)) = read(&bytes) {
                prop_assert!(elements.len() < bytes.len());
                prop_assert_eq!(elements.len() % (dim * WORD), 0);
            }
        }
    }
}
