//! Full text: found when acknowledged, after any end, whatever became of its files; and what is refused.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::Float32Type;
use arrow_array::{FixedSizeListArray, Int64Array, LargeStringArray, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use longbow_disk::{Disk, MemoryDisk};
use longbow_engine::{Class, Engine, FileKind, Folder, Id, Options, TEXT_KEY, TextQuery};

use crate::damage::files_below;

fn options() -> Options {
    Options {
        tidy_interval: Duration::from_secs(3_600),
        ..Options::new("data")
    }
}

fn open(disk: &MemoryDisk) -> Engine {
    Engine::open(Arc::new(disk.clone()), options()).expect("a sound folder")
}

fn batch(rows: &[(i64, &str)], said: Option<&str>) -> RecordBatch {
    let vectors = rows
        .iter()
        .map(|(id, _)| Some(vec![Some(*id as f32), Some(1.0)]));
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
    let ids = Int64Array::from_iter_values(rows.iter().map(|(id, _)| *id));
    let texts = StringArray::from_iter_values(rows.iter().map(|(_, text)| *text));
    let columns = [
        ("id", Arc::new(ids) as _),
        ("vector", Arc::new(vectors) as _),
        ("body", Arc::new(texts) as _),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let Some(said) = said else {
        return batch;
    };
    let mut fields = batch.schema().fields().to_vec();
    let metadata = HashMap::from([(TEXT_KEY.to_owned(), said.to_owned())]);
    fields[2] = Arc::new(Field::clone(&fields[2]).with_metadata(metadata));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec()).expect("the same")
}

pub fn put_batch(engine: &Engine, dataset: &str, batch: &RecordBatch) {
    let mut session = engine.put(dataset, &batch.schema()).expect("a good schema");
    let pending = session.record_batch(batch).expect("good rows");
    pending.wait().expect("acknowledged");
}

fn put(engine: &Engine, rows: &[(i64, &str)]) {
    put_batch(engine, "d", &batch(rows, None));
}

/// Rows enough to be indexed at once, each with a word of its own and one of ten.
pub fn put_many(engine: &Engine, dataset: &str, ids: std::ops::Range<i64>) {
    let texts: Vec<(i64, String)> = ids
        .map(|id| (id, format!("own{id} of{} word", id % 10)))
        .collect();
    let rows: Vec<(i64, &str)> = texts
        .iter()
        .map(|(id, text)| (*id, text.as_str()))
        .collect();
    put_batch(engine, dataset, &batch(&rows, None));
}

fn wait(engine: &Engine) {
    let dataset = engine.dataset("d").expect("it is there");
    assert!(dataset.wait_for_index(Duration::from_secs(300)));
}

fn query(text: &str) -> TextQuery {
    TextQuery {
        text: text.into(),
        columns: None,
    }
}

fn ids(engine: &Engine, text: &str) -> Vec<i64> {
    let found = engine
        .text_search("d", &query(text), 10_000)
        .expect("a good query");
    let id = |(id, _): (Id, f32)| match id {
        Id::Int(id) => id,
        other => panic!("an integer: {other}"),
    };
    let mut ids: Vec<i64> = found.into_iter().map(id).collect();
    ids.sort_unstable();
    ids
}

fn delete(engine: &Engine, ids: impl Iterator<Item = i64>) {
    let deleted = engine.delete_ids("d", ids.map(Id::Int).collect());
    deleted
        .and_then(|deleted| deleted.wait())
        .expect("known ids");
}

#[test]
fn what_is_acknowledged_is_found_and_what_is_gone_is_not() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put(
        &engine,
        &[(1, "red fox"), (2, "grey wolf"), (3, "red wolf")],
    );
    assert_eq!(ids(&engine, "red"), [1, 3]);
    put(&engine, &[(1, "brown bear")]);
    assert_eq!(
        (ids(&engine, "red"), ids(&engine, "b*")),
        (vec![3], vec![1])
    );
    delete(&engine, [3].into_iter());
    assert_eq!(
        (ids(&engine, "red"), ids(&engine, "\"grey wolf\"")),
        (vec![], vec![2])
    );
    put_many(&engine, "d", 100..400);
    wait(&engine);
    assert!(engine.text_pieces("d").expect("it is there").1 > 0);
    put_many(&engine, "d", 200..210);
    delete(&engine, 250..260);
    assert_eq!(ids(&engine, "of3").len(), 29);
    assert_eq!(
        (ids(&engine, "own205"), ids(&engine, "own255")),
        (vec![205], vec![])
    );
}

#[test]
fn a_start_reads_what_a_checkpoint_wrote_and_indexes_what_came_after() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put_many(&engine, "d", 0..500);
    wait(&engine);
    engine.checkpoint().expect("a checkpoint");
    let files = texts(&disk);
    put_many(&engine, "d", 450..900);
    wait(&engine);
    engine.checkpoint().expect("a checkpoint");
    // What is in a file stays there.
    let grown = texts(&disk);
    assert!(files.len() == 1 && grown.len() == 2 && grown[0] == files[0]);
    put_many(&engine, "d", 850..1_000);
    drop(engine);
    let engine = open(&disk);
    assert_eq!(
        (ids(&engine, "word").len(), ids(&engine, "own860")),
        (1_000, vec![860])
    );
    wait(&engine);
    assert_eq!(engine.rebuilt_texts(), 0);
    assert_eq!(
        (ids(&engine, "of7").len(), ids(&engine, "own860")),
        (100, vec![860])
    );
}

/// The text files of the folder, by name.
fn texts(disk: &MemoryDisk) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = files_below(disk, Path::new("data"));
    files.retain(|(path, _)| path.extension().is_some_and(|end| end == "text"));
    files
}

#[test]
fn a_damaged_file_is_told_and_built_anew() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put_many(&engine, "d", 0..500);
    wait(&engine);
    engine.checkpoint().expect("a checkpoint");
    drop(engine);
    let [(path, bytes)] = &texts(&disk)[..] else {
        panic!("one piece");
    };
    let mut broken = bytes.clone();
    broken[bytes.len() / 2] ^= 1;
    disk.write_atomic(path, &broken).expect("written");
    let folder = Folder::open(Arc::new(disk.clone()), Path::new("data"), "a test");
    let found = folder.expect("nobody has it").verify(&mut |_| Ok(()));
    let damages = found.expect("it can be looked over").damages;
    assert_eq!(damages.len(), 1, "{damages:?}");
    assert_eq!((damages[0].kind, &damages[0].file), (FileKind::Texts, path));
    let engine = open(&disk);
    wait(&engine);
    assert_eq!((engine.rebuilt_texts(), ids(&engine, "of1").len()), (1, 50));
    engine.checkpoint().expect("a checkpoint");
    let files = texts(&disk);
    assert!(files.len() == 1 && files[0].0 != *path);
}

#[test]
fn dead_rows_leave_and_give_their_space_back() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put_many(&engine, "d", 0..10_000);
    wait(&engine);
    engine.checkpoint().expect("a checkpoint");
    let size = |files: Vec<(_, Vec<u8>)>| files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    let (_, rows, bytes) = engine.text_pieces("d").expect("it is there");
    let (on_disk, before) = (size(texts(&disk)), ids(&engine, "of3"));
    delete(&engine, (0..10_000).filter(|id| id % 2 == 0));
    engine.tidy().expect("tidied");
    engine.checkpoint().expect("a checkpoint");
    let (_, left, bytes_left) = engine.text_pieces("d").expect("it is there");
    assert_eq!((rows, left, ids(&engine, "of3")), (10_000, 5_000, before));
    assert!(bytes_left * 10 < bytes * 7, "{bytes_left} of {bytes}");
    assert!(size(texts(&disk)) * 10 < on_disk * 7);
    delete(&engine, (0..10_000).filter(|id| id % 2 == 1));
    engine.tidy().expect("tidied");
    assert_eq!(engine.text_pieces("d").expect("it is there"), (0, 0, 0));
}

#[test]
fn other_columns_after_a_start_are_indexed_anew() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put_many(&engine, "d", 0..200);
    wait(&engine);
    engine.checkpoint().expect("a checkpoint");
    drop(engine);
    let other = Options {
        text_columns: vec!["title".into()],
        ..options()
    };
    let engine = Engine::open(Arc::new(disk.clone()), other).expect("a sound folder");
    let refused = engine
        .text_search("d", &query("word"), 1)
        .expect_err("no column");
    assert_eq!(
        (refused.code(), refused.class()),
        ("not_a_text_column", Class::InvalidArgument)
    );
    wait(&engine);
    engine.checkpoint().expect("a checkpoint");
    assert!(texts(&disk).is_empty());
    drop(engine);
    // As a folder of before there was full text.
    let engine = open(&disk);
    assert_eq!(ids(&engine, "of1").len(), 20);
    wait(&engine);
    assert_eq!((engine.rebuilt_texts(), ids(&engine, "of1").len()), (0, 20));
    assert_eq!(engine.text_pieces("d").expect("it is there").1, 200);
}

#[test]
fn a_column_that_comes_later_is_found_too() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put_many(&engine, "d", 0..100);
    wait(&engine);
    let more = batch(&[(200, "old column")], None);
    let mut fields = more.schema().fields().to_vec();
    fields.push(Arc::new(Field::new(
        "title",
        arrow_schema::DataType::LargeUtf8,
        true,
    )));
    let mut columns = more.columns().to_vec();
    columns.push(Arc::new(LargeStringArray::from(vec!["new column"])));
    let more = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("a batch");
    put_batch(&engine, "d", &more);
    engine.checkpoint().expect("a checkpoint");
    drop(engine);
    let engine = open(&disk);
    assert_eq!(
        (ids(&engine, "new"), ids(&engine, "of4").len()),
        (vec![200], 10)
    );
    let both = engine
        .text_search("d", &query("column"), 9)
        .expect("a query")[0]
        .1;
    let of = |column: &str| {
        let columns = Some(vec![column.to_owned()]);
        let query = TextQuery {
            text: "column".into(),
            columns,
        };
        engine.text_search("d", &query, 9).expect("a query")[0].1
    };
    assert!((both - of("body") - of("title")).abs() < 1e-5 && of("title") > 0.0);
}

#[test]
fn a_field_says_how_it_is_searched() {
    let engine = open(&MemoryDisk::new());
    let rows = [(1, "The foxes were running")];
    for (name, said, finds) in [("en", "en", "fox run"), ("grams", "ngram", "oxe")] {
        put_batch(&engine, name, &batch(&rows, Some(said)));
        assert_eq!(
            engine
                .text_search(name, &query(finds), 1)
                .expect("a query")
                .len(),
            1
        );
    }
    put_batch(&engine, "none", &batch(&rows, Some("none")));
    let refused = engine
        .text_search("none", &query("fox"), 1)
        .expect_err("no text");
    assert_eq!(refused.code(), "not_a_text_column");
    let code = |name: &str, said: &str| {
        let refused = engine.put(name, &batch(&rows, Some(said)).schema());
        refused.err().map(|error| error.code())
    };
    assert_eq!(code("x", "klingon"), Some("bad_text"));
    assert_eq!(code("en", "de"), Some("text_changed"));
    assert_eq!(code("en", "en"), None);
}

#[test]
fn what_cannot_be_searched_is_refused_with_its_name() {
    let engine = open(&MemoryDisk::new());
    put(&engine, &[(1, "red fox")]);
    let asked = |text: &str, columns: Option<&str>| {
        let columns = columns.map(|column| vec![column.to_owned()]);
        let query = TextQuery {
            text: text.into(),
            columns,
        };
        let refused = engine
            .text_search("d", &query, 1)
            .expect_err("it cannot be");
        assert_eq!(refused.class(), Class::InvalidArgument);
        (refused.code(), refused.to_string())
    };
    for (text, column, code, says) in [
        ("fox", Some("title"), "column_not_found", "title"),
        ("fox", Some("vector"), "not_a_text_column", "body"),
        ("fox", Some("id"), "not_a_text_column", "'id'"),
        ("\"fox", None, "bad_text_query", "character 1"),
        ("-fox", None, "bad_text_query", "only excludes"),
    ] {
        let (found, told) = asked(text, column);
        assert!(
            found == code && told.contains(says),
            "{text}: {found}, {told}"
        );
    }
}
