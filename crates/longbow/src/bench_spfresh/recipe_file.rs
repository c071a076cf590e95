//! The data of the recipe from a file of JSON, as other implementations of it write it.
//!
//! ```text
//! {"base":[{"id":0,"values":[0.1,0.2]},…],"updates":[[0,[0.3,0.4]],…],"queries":[[0.5,0.6],…]}
//! ```

use std::collections::HashSet;
use std::path::Path;

use longbow_disk::{Disk, RealDisk};
use serde::Deserialize;

use super::error::Error;
use super::recipe::Recipe;
use super::rows::Rows;

/// What a file holds; other keys mean nothing here.
#[derive(Deserialize)]
struct File {
    base: Vec<BaseRow>,
    updates: Vec<(i64, Vec<f32>)>,
    queries: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct BaseRow {
    id: i64,
    values: Vec<f32>,
    #[serde(default)]
    deleted: bool,
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Recipe, Error> {
    let bytes = RealDisk.map(path)?;
    decode(&bytes).map_err(|reason| Error::File {
        path: path.to_path_buf(),
        reason,
    })
}

/// The data in a file, or what is wrong with it.
fn decode(bytes: &[u8]) -> Result<Recipe, String> {
    let file: File = serde_json::from_slice(bytes).map_err(|error| {
        format!(
            "{error}; expected {{\"base\":[{{\"id\":0,\"values\":[…]}}],\"updates\":[[0,[…]]],\"queries\":[[…]]}}, \
             ids below 2^63"
        )
    })?;
    let dim = file.base.first().map_or(0, |row| row.values.len());
    let mut ids = HashSet::new();
    for (at, row) in file.base.iter().enumerate() {
        check("base", at, dim, &row.values)?;
        if row.deleted {
            return Err(format!(
                "row {at} of base is deleted; leave such rows out of the file"
            ));
        }
        if !ids.insert(row.id) {
            return Err(format!(
                "row {at} of base has the id {}, as one before it has; give each its own",
                row.id
            ));
        }
    }
    let updates = file.updates.iter().map(|(_, values)| values);
    for (at, values) in updates.enumerate() {
        check("updates", at, dim, values)?;
    }
    for (at, values) in file.queries.iter().enumerate() {
        check("queries", at, dim, values)?;
    }
    for (name, rows) in [
        ("base", file.base.len()),
        ("updates", file.updates.len()),
        ("queries", file.queries.len()),
    ] {
        if rows == 0 {
            return Err(format!("{name} is empty; give it at least one row"));
        }
    }
    let rows = |all: &mut dyn Iterator<Item = (i64, Vec<f32>)>| {
        let mut rows = Rows::new(dim);
        all.for_each(|(id, values)| rows.push(id, &values));
        rows
    };
    Ok(Recipe {
        base: rows(&mut file.base.into_iter().map(|row| (row.id, row.values))),
        updates: rows(&mut file.updates.into_iter()),
        queries: file.queries,
    })
}

fn check(list: &str, at: usize, dim: usize, values: &[f32]) -> Result<(), String> {
    if values.is_empty() {
        return Err(format!("row {at} of {list} has no values"));
    }
    if values.len() != dim {
        return Err(format!(
            "row {at} of {list} has {} values and the first of base has {dim}; they must be as many",
            values.len()
        ));
    }
    if values.iter().any(|x| !x.is_finite()) {
        return Err(format!(
            "row {at} of {list} has a value beyond float32's range; make it finite"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"{"base":[{"id":5,"values":[1,2],"version":0,"deleted":false},{"id":6,"values":[3,4.5]}],
        "updates":[[5,[6,7]],[9,[8,9]]],"queries":[[0,-1e-3]]}"#;

    #[test]
    fn a_file_is_read() {
        let recipe = decode(GOOD.as_bytes()).expect("good");
        assert_eq!(recipe.base.ids, [5, 6]);
        assert_eq!(recipe.base.vector(1), [3.0, 4.5]);
        assert_eq!(recipe.updates.ids, [5, 9]);
        assert_eq!(recipe.updates.elements, [6.0, 7.0, 8.0, 9.0]);
        assert_eq!(recipe.queries, [[0.0, -0.001]]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (good, bad, told) in [
            ("[3,4.5]", "[3]", "row 1 of base has 1 values"),
            ("[8,9]", "[8,9,10]", "row 1 of updates has 3 values"),
            ("[0,-1e-3]", "[]", "row 0 of queries has no values"),
            ("-1e-3", "1e39", "row 0 of queries has a value beyond"),
            ("\"id\":6", "\"id\":5", "row 1 of base has the id 5"),
            ("\"id\":6", "\"id\":-9.5", "line 1 column"),
            (
                "\"deleted\":false",
                "\"deleted\":true",
                "row 0 of base is deleted",
            ),
            ("[[5,[6,7]],[9,[8,9]]]", "[]", "updates is empty"),
            ("\"queries\"", "\"q\"", "missing field `queries`"),
            ("]]}", "]", "expected {\"base\":"),
        ] {
            let file = GOOD.replace(good, bad);
            let reason = decode(file.as_bytes()).expect_err(bad);
            assert!(reason.contains(told), "{bad}: {reason}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0..GOOD.len(), byte: u8, cut in 0..GOOD.len()) {
            let mut bytes = GOOD.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = decode(&bytes);
            let _ = decode(&bytes[..cut]);
        }
    }
}
