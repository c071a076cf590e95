//! Actions on an engine: JSON in, JSON out.

use longbow_engine::{ColumnIndex, Engine, Id, SearchRequest};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::filter::conditions;
use crate::json;
use crate::refusal::{Refusal, Result, invalid, unimplemented};

/// What an action answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It is gone.
    Deleted,
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
            engine.drop_dataset(&required(read::<Named>(body, NAMED)?.dataset, "dataset")?)?;
            return Ok(Answer::Deleted);
        }
        "check_readiness" => readiness(engine, optional_dataset(body)?.as_deref()),
        "VectorSearchByID" => by_id(engine, body)?,
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
        other => {
            let text = format!("there is no action '{other}' on an engine");
            let class = longbow_engine::Class::Unimplemented;
            return Err(Refusal::new(class, "unknown_action", &text));
        }
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
            indexes.push(describe_index(&dataset.name, index));
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
fn describe_index(dataset: &str, index: &ColumnIndex) -> Value {
    let graph = index.graph();
    json!({
        "dataset": dataset,
        "column": index.column,
        "quantization": graph.quantization().name(),
        "rows": graph.len(),
        "bytes": graph.memory_bytes(),
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deletion {
    dataset: String,
    id: Option<Id>,
    ids: Option<Vec<Id>>,
    filters: Option<Vec<Value>>,
    #[serde(rename = "where")]
    predicate: Option<String>,
}

fn delete(engine: &Engine, body: &[u8]) -> Result<Answer> {
    let asked: Deletion = read(body, &["dataset", "id", "ids", "filters", "where"])?;
    if asked.predicate.is_some() {
        return Err(unimplemented("a SQL predicate ('where')"));
    }
    let ids = match (asked.id, asked.ids, asked.filters.is_some()) {
        (Some(id), None, false) => Some(vec![id]),
        (None, Some(ids), false) if !ids.is_empty() => Some(ids),
        (None, None, true) => None,
        _ => {
            let text = "the delete has none or several of 'id', 'ids' (not empty) and 'filters'; send one of them";
            return Err(invalid("bad_delete", text));
        }
    };
    let pending = match ids {
        Some(ids) => engine.delete_ids(&asked.dataset, ids),
        None => engine.delete_where(&asked.dataset, &conditions(asked.filters)?),
    };
    pending?.wait()?;
    Ok(Answer::Deleted)
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
