//! Arrays as numpy stores them: format 1.0 to 3.0 of `numpy.lib.format`, two dimensions, in C order.
//!
//! ```text
//! 93 'NUMPY' | major | minor | length of the header: u16, from 2.0 on u32 | header | elements
//! header: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }
//! ```

/// Where the elements of an array are, and what they are.
#[derive(Debug, PartialEq, Eq)]
pub struct Array {
    /// numpy's name of the element type without the byte order, such as `f4`.
    pub element: String,
    /// The first dimension.
    pub rows: usize,
    /// The second.
    pub columns: usize,
    /// Where the elements begin; they take all bytes from there on.
    pub offset: usize,
}

/// Reads the header and checks that the file is as long as it says; else tells what is wrong.
pub fn read(file: &[u8]) -> Result<Array, String> {
    let rest = file
        .strip_prefix(b"\x93NUMPY")
        .ok_or("does not begin like a .npy file")?;
    let (start, len) = match rest {
        [1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        _ => return Err("is a .npy file of an unknown version".to_owned()),
    };
    let offset = start + len;
    let header = file.get(start..offset).ok_or("ends within its header")?;
    let header = std::str::from_utf8(header).map_err(|_| "has a header that is no text")?;
    let array = parse(header).ok_or_else(|| format!("has a header not understood: {header}"))?;
    let (descr, fortran, shape) = array;
    if fortran {
        return Err("is in Fortran order: save it with numpy.ascontiguousarray".to_owned());
    }
    let [rows, columns] = shape[..] else {
        return Err(format!("has {} dimensions, expected 2", shape.len()));
    };
    let element = descr
        .strip_prefix(['<', '|', '='])
        .ok_or_else(|| format!("has elements {descr}, expected little-endian ones"))?;
    let size = match element {
        "f4" | "i4" => 4,
        "f2" => 2,
        "i1" | "u1" => 1,
        "i8" => 8,
        _ => return Err(format!("has elements {descr}, expected f4, f2, i1 or u1")),
    };
    let bytes = rows.checked_mul(columns).and_then(|n| n.checked_mul(size));
    if bytes != Some(file.len() - offset) {
        let there = file.len() - offset;
        return Err(format!(
            "has {there} bytes of elements, and its header says {rows} x {columns} of {size}"
        ));
    }
    Ok(Array {
        element: element.to_owned(),
        rows,
        columns,
        offset,
    })
}

/// The three entries of a header, in whatever order they come.
fn parse(header: &str) -> Option<(&str, bool, Vec<usize>)> {
    let value = |key: &str| {
        Some(
            header
                .split_once(key)?
                .1
                .trim_start()
                .strip_prefix(':')?
                .trim_start(),
        )
    };
    let descr = value("'descr'")?.strip_prefix('\'')?.split_once('\'')?.0;
    let fortran = value("'fortran_order'")?.starts_with("True");
    let shape = value("'shape'")?.strip_prefix('(')?.split_once(')')?.0;
    let sizes = shape
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty());
    let sizes: Result<Vec<usize>, _> = sizes.map(str::parse).collect();
    Some((descr, fortran, sizes.ok()?))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of version 1.0.
    pub fn file(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend(u16::try_from(header.len()).expect("short").to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(elements);
        file
    }

    #[test]
    fn the_header_says_where_the_elements_are() {
        let bytes = file("<f4", "(2, 3)", &[7; 24]);
        let array = read(&bytes).expect("valid");
        assert_eq!((array.rows, array.columns), (2, 3));
        assert_eq!(array.element, "f4");
        assert_eq!(bytes[array.offset..], [7; 24]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let told = |file: &[u8]| read(file).expect_err("wrong");
        assert!(told(b"PK").contains("begin"));
        assert!(told(b"\x93NUMPY\x09\x00\x00\x00").contains("version"));
        assert!(told(b"\x93NUMPY\x01\x00\xff\xff{").contains("ends within"));
        assert!(told(&file("<f4", "(2, 3)", &[7; 23])).contains("2 x 3"));
        assert!(told(&file("<f4", "(6,)", &[7; 24])).contains("1 dimensions"));
        assert!(told(&file(">f4", "(2, 3)", &[7; 24])).contains("little-endian"));
        assert!(told(&file("<f8", "(1, 3)", &[7; 24])).contains("<f8"));
        assert!(
            told(&file("<f4", "(18446744073709551615, 8)", &[])).contains("18446744073709551615")
        );
        let text = String::from_utf8_lossy(&file("<f4", "(2, 3)", &[])).replace("False", "True ");
        let fortran = [&b"\x93"[..], &text.as_bytes()["\u{fffd}".len()..], &[7; 24]].concat();
        assert!(told(&fortran).contains("Fortran"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), real: bool, at: usize, by: u8) {
            if real {
                bytes = file("<f2", "(3, 4)", &bytes);
                let at = at % bytes.len();
                bytes[at] ^= by;
            }
            if let Ok(array) = read(&bytes) {
                prop_assert!(array.offset <= bytes.len());
                prop_assert!(array.rows * array.columns <= bytes.len());
            }
        }
    }
}
