//! Actions on an engine: JSON in, JSON out.

use std::sync::Arc;

use longbow_engine::{Applied, ColumnIndex, Dataset, Engine, Id, IndexKind, SearchRequest};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::filter::Conditions;
use crate::json;
use crate::refusal::{Refusal, Result, invalid};
use crate::search::SearchObject;

/// What an action answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It is gone: so many rows, at this place of the log.
    Deleted(Applied),
    /// This.
    Json(Value),
}

/// Carries out an action by its name. Blocks for as long as it takes.
///
/// # Errors
/// As the action says; Unimplemented for a name that is none of the engine's.
pub fn run(engine: &Engine, name: &str, body: &[u8]) -> Result<Answer> {
    Ok(Answer::Json(match name {
        "delete" | "Delete" => return delete(engine, body),
        "delete-dataset" => {
            let name = required(read::<Named>(body, NAMED)?.dataset, "dataset")?;
            return Ok(Answer::Deleted(engine.drop_dataset(&name)?));
        }
        "check_readiness" => readiness(engine, optional_dataset(body)?.as_deref()),
        "VectorSearchByID" => by_id(engine, body)?,
        "HybridSearch" => hybrid(engine, body)?,
        "CreateNamespace" => {
            engine.create_namespace(&required(read::<Named>(body, NAMED)?.name, "name")?)?;
            json!({"status": "created"})
        }
        "DeleteNamespace" => delete_namespace(engine, read(body, NAMED)?)?,
        "ListNamespaces" => {
            let namespaces = engine.catalog().namespaces();
            json!({"count": namespaces.len(), "namespaces": namespaces})
        }
        "GetTotalNamespaceCount" => json!({"count": engine.catalog().namespaces().len()}),
        "GetNamespaceDatasetCount" => {
            let namespace = required(read::<Named>(body, NAMED)?.name, "name")?;
            json!({"count": engine.catalog().datasets_in(&namespace)?})
        }
        "ForceSnapshot" => {
            if let Some(dataset) = optional_dataset(body)? {
                engine.dataset(&dataset)?;
            }
            json!({"status": "created", "snapshot": engine.checkpoint()?})
        }
        "Backup" => backup(engine, body)?,
        other => {
            let text = format!("there is no action '{other}' on an engine");
            let class = longbow_engine::Class::Unimplemented;
            return Err(Refusal::new(class, "unknown_action", &text));
        }
    }))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ToBackup {
    name: Option<String>,
}

fn backup(engine: &Engine, body: &[u8]) -> Result<Value> {
    let asked: ToBackup = read(body, &["name"])?;
    let made = engine.backup(&required(asked.name, "name")?)?;
    Ok(json!({
        "status": "created",
        "path": made.path.display().to_string(),
        "offset": made.offset,
        "datasets": made.datasets,
        "rows": made.rows,
        "files": made.files,
        "bytes": made.bytes,
    }))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Named {
    name: Option<String>,
    dataset: Option<String>,
}

const NAMED: &[&str] = &["name", "dataset"];

fn read<T: serde::de::DeserializeOwned>(body: &[u8], known: &[&str]) -> Result<T> {
    json::read(body, "action's body", known)
}

fn optional_dataset(body: &[u8]) -> Result<Option<String>> {
    if body.is_empty() {
        return Ok(None);
    }
    let named: Named = read(body, NAMED)?;
    Ok(named.dataset.or(named.name))
}

fn required(value: Option<String>, key: &str) -> Result<String> {
    value.ok_or_else(|| {
        invalid(
            "missing_key",
            &format!("the action's body has no '{key}'; add it"),
        )
    })
}

fn readiness(engine: &Engine, dataset: Option<&str>) -> Value {
    let datasets = match dataset {
        None => engine.catalog().datasets(),
        Some(name) => match engine.catalog().find(name) {
            Some(dataset) => vec![dataset],
            None => return json!({"status": "NOT_FOUND", "reason": format!("no dataset '{name}'")}),
        },
    };
    let waiting: u64 = datasets.iter().map(|dataset| dataset.unindexed()).sum();
    let rows: u64 = datasets.iter().map(|dataset| dataset.view().live).sum();
    let mut index_len = 0;
    let mut indexes = Vec::new();
    for dataset in &datasets {
        for index in dataset.indexes().iter() {
            index_len += index.graph().len() as u64;
            indexes.push(describe_index(dataset, index));
        }
    }
    let mut told =
        json!({"status": "READY", "index_len": index_len, "rows": rows, "indexes": indexes});
    if waiting > 0 {
        let reason = format!("{waiting} rows wait for the index; searches scan them exactly");
        told["status"] = "BUSY".into();
        told["reason"] = reason.into();
    }
    told
}

/// What the index of one vector column is, and what it costs.
fn describe_index(dataset: &Dataset, index: &ColumnIndex) -> Value {
    let (graph, live) = (index.graph(), dataset.view().live);
    json!({
        "dataset": dataset.name,
        "column": index.column,
        "index": graph.kind().name(),
        "auto": index.is_auto(),
        "moving_to": index.moving_to().map(IndexKind::name),
        "quantization": graph.quantization().name(),
        "rows": graph.len(),
        "bytes": graph.memory_bytes(),
        "calibrated": index.is_calibrated(live),
        "recall": index.recall(),
        "bytes_per_row": graph.memory_bytes().checked_div(graph.len()),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ById {
    dataset: String,
    id: Id,
    k: Option<i64>,
}

fn by_id(engine: &Engine, body: &[u8]) -> Result<Value> {
    let asked: ById = read(body, &["dataset", "id", "k"])?;
    let k = asked.k.unwrap_or(10);
    let k = usize::try_from(k).map_err(|_| longbow_engine::Error::BadK {
        got: k,
        max: longbow_engine::MAX_K,
    })?;
    let vector = engine.vector_of(&asked.dataset, &asked.id, None)?;
    let found = engine.search(&asked.dataset, &SearchRequest::nearest(vector, k))?;
    let ids: Vec<Value> = found.ids()?.into_iter().map(|id| json!(id)).collect();
    Ok(json!({"ids": ids, "scores": found.scores()}))
}

/// A search whose answer is a list of objects, as clients of an earlier server expect it: id, distance, score, the other
/// columns, and the vector.
fn hybrid(engine: &Engine, body: &[u8]) -> Result<Value> {
    let (name, mut request) = SearchObject::parse(body)?.into_request()?;
    let dataset = engine.dataset(&name)?;
    let schema = Arc::clone(&dataset.view().schema);
    let vector = schema
        .vector(&name, request.column.as_deref())?
        .name
        .clone();
    let is_vector = |column: &str| schema.vectors.iter().any(|vector| vector.name == column);
    if request.columns.is_empty() {
        let names = schema.arrow.fields().iter().map(|field| field.name());
        let others = names.filter(|name| !is_vector(name) && !OWN.contains(&name.as_str()));
        request.columns = others.cloned().collect();
    }
    request.include_vectors = true;
    let found = engine.search(&name, &request)?;
    let mut rows = Vec::with_capacity(found.batch.num_rows());
    for (row, id) in crate::rows::write(&found.batch)?
        .into_iter()
        .zip(found.ids()?)
    {
        let Value::Object(mut row) = row else {
            continue;
        };
        let mut take = |key: &str| row.remove(key).unwrap_or(Value::Null);
        take("id");
        let (distance, score, vector) = (take("distance"), take("score"), take(&vector));
        rows.push(json!({"ID": id, "Distance": distance, "Score": score, "Metadata": row, "Vector": vector}));
    }
    Ok(rows.into())
}

/// Columns of a search's answer that are no metadata.
const OWN: [&str; 4] = ["id", "distance", "score", "query_index"];

const DELETION: [&str; 6] = ["dataset", "id", "ids", "filters", "where", "count"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deletion {
    dataset: String,
    id: Option<Id>,
    ids: Option<Vec<Id>>,
    #[serde(default, deserialize_with = "crate::once::values")]
    filters: Option<Vec<Value>>,
    #[serde(rename = "where")]
    predicate: Option<String>,
    count: Option<bool>,
}

/// What is gone, for those who want to know more than that it is.
pub fn deleted(gone: Applied) -> Value {
    let Applied {
        rows,
        offset,
        durable,
    } = gone;
    json!({"status": "deleted", "rows": rows, "offset": offset, "durable": durable})
}

fn delete(engine: &Engine, body: &[u8]) -> Result<Answer> {
    let asked: Deletion = read(body, &DELETION)?;
    let by_filter = asked.filters.is_some() || asked.predicate.is_some();
    let conditions = Conditions::read(asked.filters, asked.predicate)?;
    let pending = match (asked.id, asked.ids, conditions) {
        // An empty list of filters is no wish for all rows, and none for no filter.
        (_, _, None) if by_filter => return Err(bad_delete()),
        (Some(id), None, None) => engine.delete_ids(&asked.dataset, vec![id]),
        (None, Some(ids), None) if !ids.is_empty() => engine.delete_ids(&asked.dataset, ids),
        (None, None, Some(conditions)) => engine.delete_where(&asked.dataset, &conditions),
        _ => return Err(bad_delete()),
    };
    let gone = pending?.wait()?;
    Ok(match asked.count {
        Some(true) => Answer::Json(deleted(gone)),
        _ => Answer::Deleted(gone),
    })
}

fn bad_delete() -> Refusal {
    let text = "the delete has none or several of 'id', 'ids' (not empty), and 'filters' (not empty) or 'where'; send one of them";
    invalid("bad_delete", text)
}

fn delete_namespace(engine: &Engine, named: Named) -> Result<Value> {
    let is_dataset = |name: &str| engine.catalog().find(name).is_some();
    match (named.dataset, named.name) {
        (Some(dataset), _) => engine.drop_dataset(&dataset)?,
        // Clients call a dataset a namespace here; a name that is only a dataset's means that.
        (None, Some(name))
            if is_dataset(&name) && !engine.catalog().namespaces().contains(&name) =>
        {
            engine.drop_dataset(&name)?
        }
        (None, Some(name)) => engine.delete_namespace(&name)?,
        (None, None) => {
            return Err(invalid(
                "missing_key",
                "the action's body has no 'name'; add it",
            ));
        }
    };
    Ok(json!({"status": "deleted"}))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Float32Type;
    use arrow_array::{FixedSizeListArray, Int64Array, RecordBatch};
    use longbow_disk::MemoryDisk;
    use longbow_engine::{Class, Options};

    use super::*;

    /// An engine in memory with a dataset of three rows, `[0, 0]`, `[1, 0]` and `[2, 0]`.
    fn engine() -> Engine {
        let engine = Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data"));
        let engine = engine.expect("an engine");
        let rows = (0..3u8).map(|n| Some([Some(f32::from(n)), Some(0.0)]));
        let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2);
        let ids = Int64Array::from(vec![0, 1, 2]);
        let columns = [
            ("id", Arc::new(ids) as _),
            ("vector", Arc::new(vectors) as _),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let mut put = engine.put("words", &batch.schema()).expect("a put");
        let pending = put.record_batch(&batch).expect("taken");
        pending.wait().expect("acknowledged");
        engine
    }

    fn told(engine: &Engine, name: &str, body: &str) -> Value {
        match run(engine, name, body.as_bytes()).expect("an answer") {
            Answer::Json(value) => value,
            Answer::Deleted(_) => panic!("{name} deleted something"),
        }
    }

    fn deleted(engine: &Engine, body: &str) -> u64 {
        match run(engine, "delete", body.as_bytes()).expect("an answer") {
            Answer::Deleted(gone) => gone.rows,
            Answer::Json(value) => panic!("the delete told {value}"),
        }
    }

    fn code_of(engine: &Engine, name: &str, body: &str) -> &'static str {
        let refused = run(engine, name, body.as_bytes());
        refused.expect_err("the action is wrong").code
    }

    #[test]
    fn the_neighbours_of_a_row_begin_with_it() {
        let body = r#"{"dataset":"words","id":1,"k":2}"#;
        let found = told(&engine(), "VectorSearchByID", body);
        assert_eq!(found["ids"][0], 1);
        assert_eq!(found["scores"][0], 1.0);
    }

    #[test]
    fn rows_are_deleted_by_id_and_by_filter() {
        let engine = engine();
        let rows = |engine: &Engine| {
            told(engine, "check_readiness", r#"{"dataset":"words"}"#)["rows"].clone()
        };
        let by_id = r#"{"dataset":"words","id":1}"#;
        assert_eq!(deleted(&engine, by_id), 1);
        assert_eq!(rows(&engine), 2);
        let by_filter = r#"{"dataset":"words","filters":[{"field":"id","op":">","value":1}]}"#;
        assert_eq!(deleted(&engine, by_filter), 1);
        assert_eq!(deleted(&engine, by_filter), 0);
        assert_eq!(rows(&engine), 1);
        assert_eq!(code_of(&engine, "delete", by_id), "id_not_found");
        assert_eq!(
            code_of(&engine, "delete", r#"{"dataset":"words"}"#),
            "bad_delete"
        );
    }

    #[test]
    fn namespaces_and_datasets_come_and_go() {
        let engine = engine();
        told(&engine, "CreateNamespace", r#"{"name":"team"}"#);
        assert_eq!(
            told(&engine, "GetNamespaceDatasetCount", r#"{"name":"team"}"#)["count"],
            0
        );
        let names = told(&engine, "ListNamespaces", "")["namespaces"].clone();
        assert!(names.as_array().expect("a list").contains(&json!("team")));
        told(&engine, "DeleteNamespace", r#"{"name":"team"}"#);
        assert_eq!(
            code_of(&engine, "DeleteNamespace", r#"{"name":"team"}"#),
            "namespace_not_found"
        );
        let dataset = r#"{"dataset":"words"}"#;
        assert!(told(&engine, "ForceSnapshot", dataset)["snapshot"].is_u64());
        let dropped = run(&engine, "delete-dataset", dataset.as_bytes());
        assert!(matches!(dropped, Ok(Answer::Deleted(_))), "{dropped:?}");
        assert_eq!(
            told(&engine, "check_readiness", dataset)["status"],
            "NOT_FOUND"
        );
    }

    #[test]
    fn what_is_no_action_of_an_engine_is_refused() {
        let refused = run(&engine(), "MeshStatus", b"").expect_err("a server's");
        assert_eq!(
            (refused.class, refused.code),
            (Class::Unimplemented, "unknown_action")
        );
        assert_eq!(
            code_of(&engine(), "CreateNamespace", r#"{"nmae":"x"}"#),
            "unknown_key"
        );
        assert_eq!(code_of(&engine(), "CreateNamespace", "{}"), "missing_key");
    }
}
