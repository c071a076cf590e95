//! The flags of `longbow plan`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use longbow_engine::{IdKind, Load, METRIC_KEY, Options};
use longbow_types::{Inputs, resolve};

use crate::args::{count, size};

/// Types of vector elements, as Arrow names them.
const TYPES: [(&str, DataType); 11] = [
    ("float32", DataType::Float32),
    ("float16", DataType::Float16),
    ("float64", DataType::Float64),
    ("int8", DataType::Int8),
    ("uint8", DataType::UInt8),
    ("int16", DataType::Int16),
    ("uint16", DataType::UInt16),
    ("int32", DataType::Int32),
    ("uint32", DataType::UInt32),
    ("int64", DataType::Int64),
    ("uint64", DataType::UInt64),
];
/// Rows of a put, as the Python client sends them unless told otherwise.
const ROWS_A_PUT: u64 = 1_000;
/// Options of the node that may be given here too: the name of the option and of the flag.
const OPTIONS: [(&str, &str); 3] = [
    ("vector-index", "vector-index"),
    ("quantization", "quantization"),
    ("memory-limit", "memory-limit"),
];

/// What is asked for.
pub struct Asked {
    /// The rows.
    pub load: Load,
    /// The name of their elements' type.
    pub element: String,
    /// The name of their metric.
    pub metric: String,
    /// The node.
    pub options: Options,
    /// Whether time is measured.
    pub measure: bool,
    /// Where the JSON goes; `-` is standard output.
    pub json: Option<PathBuf>,
}

/// The command.
pub fn command() -> clap::Command {
    clap::Command::new("plan")
        .about("What a dataset will take of memory, disk and time")
        .arg_required_else_help(true)
        .args([
            count("rows", "Rows", 1, 1 << 40).required(true),
            count("dim", "Elements of a vector", 1, 65_536).required(true),
            word("type", "TYPE", "Type of the elements", "float32")
                .value_parser(PossibleValuesParser::new(TYPES.map(|(name, _)| name))),
            word("metric", "METRIC", "How nearness is measured", "euclidean").value_parser(
                PossibleValuesParser::new(["euclidean", "cosine", "dot_product"]),
            ),
            word(
                "ids",
                "IDS",
                "What ids are like: counted up with the rows, any integers, or text",
                "integers",
            )
            .value_parser(PossibleValuesParser::new(["counted", "integers", "text"])),
            count("id-bytes", "Bytes of an id that is text", 0, 65_536).default_value("16"),
            size("bytes-of-other-columns", "Bytes of a row besides its id and its vector", 0, 1 << 30)
                .default_value("0"),
            Arg::new("vector-index")
                .long("vector-index")
                .value_name("VALUE")
                .help("The kind of index: flat, hnsw, spfresh or auto [default: as configured]"),
            Arg::new("quantization")
                .long("quantization")
                .value_name("VALUE")
                .help("What the graph holds of each vector: auto, rabitq, sq8 or none [default: as configured]"),
            Arg::new("memory-limit")
                .long("memory-limit")
                .value_name("BYTES")
                .help("The memory limit of the node [default: as configured]"),
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The node's file of settings [env: LONGBOW_CONFIG]"),
            Arg::new("measure")
                .long("measure")
                .action(ArgAction::SetTrue)
                .help("Builds a small graph, for some seconds, to tell how long the whole one takes on this machine"),
            Arg::new("json")
                .long("json")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Writes the plan as JSON; - for standard output, instead of the table"),
        ])
}

fn word(name: &'static str, value: &'static str, help: &'static str, default: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .help(help)
        .default_value(default)
}

/// What a command line asks for, or what is wrong with it.
pub fn asked(matches: &ArgMatches) -> Result<Asked, String> {
    // Each has a default or is required.
    let get = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or_default();
    let word = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let (element, metric) = (word("type"), word("metric"));
    let ids = match word("ids").as_str() {
        "counted" => IdKind::Counted,
        "text" => IdKind::Text(get("id-bytes")),
        _ => IdKind::Integers,
    };
    let given = OPTIONS.iter().filter_map(|(option, flag)| {
        let value = matches.get_one::<String>(flag)?;
        Some(((*option).to_owned(), value.clone()))
    });
    let config = matches.get_one::<PathBuf>("config").cloned();
    let config = Inputs::of_process(given.collect(), config)
        .and_then(|inputs| resolve(&inputs))
        .map_err(|error| error.to_string())?
        .config();
    Ok(Asked {
        load: Load {
            schema: Arc::new(schema(&element, &metric, ids, get("dim"))?),
            rows: get("rows"),
            ids,
            other_bytes: get("bytes-of-other-columns"),
            rows_a_put: ROWS_A_PUT,
        },
        element,
        metric,
        options: longbow_engine::Options::configured(&config),
        measure: matches.get_flag("measure"),
        json: matches.get_one::<PathBuf>("json").cloned(),
    })
}

fn schema(element: &str, metric: &str, ids: IdKind, dim: u64) -> Result<Schema, String> {
    let known = TYPES.iter().find(|(name, _)| *name == element);
    let (_, element) = known.ok_or_else(|| format!("an unknown type: {element}"))?;
    let dim = i32::try_from(dim).map_err(|error| error.to_string())?;
    let id = match ids {
        IdKind::Text(_) => DataType::Utf8,
        _ => DataType::Int64,
    };
    let item = Arc::new(Field::new("item", element.clone(), true));
    let fields = vec![
        Field::new("id", id, true),
        Field::new("vector", DataType::FixedSizeList(item, dim), true),
    ];
    let metadata = HashMap::from([(METRIC_KEY.to_owned(), metric.to_owned())]);
    Ok(Schema::new_with_metadata(fields, metadata))
}
