//! Arrays of bytes as the MNIST family stores them: the idx format (LeCun).
//!
//! ```text
//! 0 | 0 | 8: elements are u8 | number of dimensions | each dimension: u32, big-endian | elements
//! ```

/// Rows, the elements of one row (the product of all further dimensions), and where the elements begin.
#[derive(Debug, PartialEq, Eq)]
pub struct Array {
    /// The first dimension.
    pub rows: usize,
    /// All others, flattened.
    pub columns: usize,
    /// Where the elements begin; they take all bytes from there on.
    pub offset: usize,
}

/// Reads the header and checks that the file is as long as it says; else tells what is wrong.
pub fn read(file: &[u8]) -> Result<Array, String> {
    if file.starts_with(&[0x1f, 0x8b]) {
        return Err("is packed: gunzip it first".to_owned());
    }
    let [0, 0, 8, dimensions @ 2..=255, rest @ ..] = file else {
        return Err("is no idx file of bytes in two or more dimensions".to_owned());
    };
    let header = rest
        .get(..usize::from(*dimensions) * 4)
        .ok_or("ends within its header")?;
    let mut sizes = header.chunks_exact(4).map(|size| {
        let size = [size[0], size[1], size[2], size[3]];
        u32::from_be_bytes(size) as usize
    });
    let rows = sizes.next().unwrap_or_default();
    let columns = sizes.try_fold(1usize, usize::checked_mul);
    let there = rest.len() - header.len();
    match columns {
        Some(columns) if rows.checked_mul(columns) == Some(there) => Ok(Array {
            rows,
            columns,
            offset: file.len() - there,
        }),
        _ => Err(format!(
            "has {there} bytes of elements, which is not what its header says"
        )),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of these dimensions.
    pub fn file(sizes: &[u32], elements: &[u8]) -> Vec<u8> {
        let mut file = vec![0, 0, 8, u8::try_from(sizes.len()).expect("few")];
        file.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
        file.extend(elements);
        file
    }

    #[test]
    fn further_dimensions_are_one_row() {
        let array = read(&file(&[2, 2, 3], &[5; 12])).expect("valid");
        let expected = Array {
            rows: 2,
            columns: 6,
            offset: 16,
        };
        assert_eq!(array, expected);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let told = |file: &[u8]| read(file).expect_err("wrong");
        assert!(told(&[0x1f, 0x8b, 8]).contains("gunzip"));
        assert!(told(&file(&[7], &[5; 7])).contains("two or more"));
        assert!(told(&[0, 0, 0x0d, 2]).contains("bytes"));
        assert!(told(&[0, 0, 8, 2, 0, 0]).contains("ends within"));
        assert!(told(&file(&[2, 3], &[5; 7])).contains("7 bytes"));
        assert!(told(&file(&[u32::MAX; 5], &[])).contains("0 bytes"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), sizes in prop::collection::vec(0u32..9, 0..4)) {
            let _ = read(&bytes);
            let bytes = file(&sizes, &bytes);
            if let Ok(array) = read(&bytes) {
                prop_assert_eq!(array.offset + array.rows * array.columns, bytes.len());
            }
        }
    }
}
