//! The flags of `longbow bench ann`, and what they ask for.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use longbow_index::{HnswParams, Metric, QuantizedParams};

use super::index::Choice;
use crate::args::{int, one};

/// Breadths at which an index is measured unless others are named.
const SWEEP: &str = "10,16,24,32,48,64,96,128,192,256";

const METRICS: [(&str, Metric); 4] = [
    ("euclidean", Metric::Euclidean),
    ("cosine", Metric::Cosine),
    ("dot", Metric::Dot),
    // As it is named everywhere else.
    ("dot_product", Metric::Dot),
];

/// What a command line asks for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The vectors.
    pub base: PathBuf,
    /// What is searched for.
    pub queries: PathBuf,
    /// The exact answers; without them they are found.
    pub truth: Option<PathBuf>,
    /// The column of vectors in Parquet files, if it is named.
    pub column: Option<String>,
    /// How nearness is measured.
    pub metric: Metric,
    /// Neighbours asked for.
    pub k: usize,
    /// Threads that build, and then search.
    pub threads: usize,
    /// The index.
    pub index: Choice,
    /// How a graph is built.
    pub params: HnswParams,
    /// Breadths of the search.
    pub sweep: Vec<usize>,
    /// Passes at each.
    pub repeat: usize,
    /// Vectors that are taken, from the first one on; all of them if none.
    pub limit: Option<usize>,
    /// Where the JSON goes; `-` is standard output.
    pub json: Option<PathBuf>,
    /// Whether passes are made on request.
    pub serve: bool,
}

/// The command `ann` of `longbow bench`.
pub fn command() -> clap::Command {
    let defaults = HnswParams::default();
    let path = |name, text: &str| one(name, "FILE", text).value_parser(value_parser!(PathBuf));
    clap::Command::new("ann")
        .about("Measure an index over vectors from a file: recall against queries a second of processor time")
        .arg(path("base", "The vectors: .npy (f4, f2, i1, u1), .fvecs, .parquet (lists of numbers), or idx of bytes").required(true))
        .arg(path("queries", "What to search for, in the same formats").required(true))
        .arg(one("column", "NAME", "The column of vectors in .parquet files [default: the only one, or vector]"))
        .arg(
            path("truth", "The exact answers: row numbers, nearest first, .npy (i4, i8), .ivecs or .parquet [default: found by an exact scan]")
                .conflicts_with("limit"),
        )
        .arg(
            one("metric", "METRIC", "How nearness is measured [default: euclidean]")
                .value_parser(PossibleValuesParser::new(METRICS.map(|(name, _)| name))),
        )
        .arg(
            one("index", "INDEX", "What is measured [default: hnsw]")
                .value_parser(PossibleValuesParser::new(Choice::ALL.map(Choice::name))),
        )
        .arg(
            one("quantization", "NAME", "What the graph holds of each vector [default: none, or what the index is named for]")
                .value_parser(["none", "rabitq", "sq8"]),
        )
        .arg(int("k", "Neighbours asked for [default: 10]".to_owned(), 1, 1000))
        .arg(int("threads", "Threads that build, and then search [default: 1]".to_owned(), 1, 1024))
        .arg(int("sweep", format!("Breadths of the search, from k on [default: {SWEEP}]"), 1, 1_000_000).value_delimiter(','))
        .arg(int("m", format!("Links of a node on each level [default: {}]", defaults.m), 2, 256))
        .arg(int(
            "ef-construction",
            format!(
                "Candidates for a new node's links [default: {}, of codes {}]",
                defaults.ef_construction,
                QuantizedParams::default().ef_construction
            ),
            8,
            4_096,
        ))
        .arg(int("repeat", "Passes at each breadth, of which the median is told [default: 3]".to_owned(), 1, 1000))
        .arg(int("seed", format!("From which a graph is drawn [default: {}]", defaults.seed), 0, i64::MAX))
        .arg(int("limit", "Takes only the first vectors".to_owned(), 1, i64::MAX))
        .arg(path("json", "Writes the report as JSON; - for standard output, instead of the table"))
        .arg(
            Arg::new("serve")
                .long("serve")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["sweep", "repeat", "json"])
                .help("Builds, then makes one pass for each line {\"effort\":16,\"batched\":false} of standard input"),
        )
}

/// What the matches of `ann` ask for, or what is wrong with it.
pub fn settings(matches: &ArgMatches) -> Result<Settings, String> {
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let word = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let number = |name: &str| {
        let number = matches.get_one::<i64>(name);
        number.and_then(|n| usize::try_from(*n).ok())
    };
    let metric = word("metric").map_or(Some(Metric::Euclidean), |word| {
        METRICS
            .into_iter()
            .find(|(name, _)| *name == word)
            .map(|(_, metric)| metric)
    });
    let index = word("index").map_or(Some(Choice::Hnsw), |word| {
        Choice::ALL.into_iter().find(|choice| choice.name() == word)
    });
    let index = index.ok_or("an unknown index")?;
    let index = match word("quantization") {
        Some(word) => index.quantized(word).ok_or_else(|| {
            let (index, own) = (index.name(), index.quantization());
            format!(
                "--quantization {word} is not one of --index {index}: leave it out, or say {own}"
            )
        })?,
        None => index,
    };
    let k = number("k").unwrap_or(10);
    refuse_what_counts_for_nothing(matches, index, k)?;
    let mut params = HnswParams::default();
    params.m = number("m").unwrap_or(params.m);
    if matches!(index, Choice::Rabitq | Choice::Sq8) {
        params.ef_construction = QuantizedParams::default().ef_construction;
    }
    params.ef_construction = number("ef-construction").unwrap_or(params.ef_construction);
    params.seed = number("seed").map_or(params.seed, |seed| seed as u64);
    let sweep = match matches.get_many::<i64>("sweep") {
        Some(efforts) => efforts.filter_map(|n| usize::try_from(*n).ok()).collect(),
        None => default_sweep(k),
    };
    Ok(Settings {
        base: path("base").ok_or("name the vectors: --base")?,
        queries: path("queries").ok_or("name the queries: --queries")?,
        truth: path("truth"),
        column: word("column").map(str::to_owned),
        metric: metric.ok_or("an unknown metric")?,
        k,
        threads: number("threads").unwrap_or(1),
        index,
        params,
        sweep,
        repeat: number("repeat").unwrap_or(3),
        limit: number("limit"),
        json: path("json"),
        serve: matches.get_flag("serve"),
    })
}

/// Breadths from `k` on, for no search is narrower.
fn default_sweep(k: usize) -> Vec<usize> {
    let efforts = SWEEP.split(',').filter_map(|n| n.parse().ok());
    let mut sweep: Vec<usize> = efforts.filter(|effort| *effort >= k).collect();
    if sweep.is_empty() {
        sweep.push(k);
    }
    sweep
}

/// Refuses flags that the index, or the files, have no use for: a measurement would seem to be one with them.
fn refuse_what_counts_for_nothing(
    matches: &ArgMatches,
    index: Choice,
    k: usize,
) -> Result<(), String> {
    let is_named = |flag: &str| matches.contains_id(flag);
    let idle: &[&str] = match index {
        Choice::Hnsw => &[],
        Choice::Rabitq | Choice::Sq8 => &["m"],
        Choice::Flat => &["m", "ef-construction", "seed"],
    };
    if let Some(flag) = idle.iter().find(|flag| is_named(flag)) {
        let index = index.name();
        return Err(format!(
            "--{flag} counts for nothing with --index {index}: leave it out"
        ));
    }
    let is_parquet = |flag: &&str| {
        let path = matches.get_one::<PathBuf>(flag);
        path.is_some_and(|path| path.extension().is_some_and(|ending| ending == "parquet"))
    };
    if is_named("column") && !["base", "queries"].iter().any(is_parquet) {
        return Err(
            "--column names a column of .parquet files, and neither --base nor --queries is one: leave it out"
                .to_owned(),
        );
    }
    let mut sweep = matches.get_many::<i64>("sweep").into_iter().flatten();
    match sweep.find(|effort| usize::try_from(**effort).is_ok_and(|effort| effort < k)) {
        Some(effort) => Err(format!(
            "--sweep has {effort}, and a search for --k {k} holds no fewer: let it begin at {k}"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Settings, String> {
        settings(&crate::args::read(command(), line)?)
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn defaults() {
        let settings = read("--base b.npy --queries q.npy").expect("valid");
        assert_eq!(settings.base, PathBuf::from("b.npy"));
        assert_eq!((settings.k, settings.threads, settings.repeat), (10, 1, 3));
        assert_eq!(settings.sweep, [10, 16, 24, 32, 48, 64, 96, 128, 192, 256]);
        assert_eq!(settings.metric, Metric::Euclidean);
        assert_eq!(settings.index, Choice::Hnsw);
        assert_eq!(settings.params, HnswParams::default());
        assert_eq!((settings.truth, settings.limit), (None, None));
        assert!(!settings.serve);
        for (k, sweep) in [(100, &[128, 192, 256][..]), (300, &[300])] {
            let settings = read(&format!("--base b --queries q --k {k}")).expect("valid");
            assert_eq!(settings.sweep, sweep);
        }
    }

    #[test]
    fn all_flags_are_read() {
        let line = "--base b --queries q --truth t --metric dot --k 5 --threads 2 --index hnsw --sweep 7,9 --m 8 \
                    --ef-construction 50 --repeat 2 --seed 3 --json -";
        let settings = read(line).expect("valid");
        assert_eq!(settings.truth, Some(PathBuf::from("t")));
        assert_eq!((settings.k, settings.threads, settings.repeat), (5, 2, 2));
        assert_eq!(settings.sweep, [7, 9]);
        assert_eq!(
            (settings.metric, settings.index),
            (Metric::Dot, Choice::Hnsw)
        );
        let params = settings.params;
        assert_eq!((params.m, params.ef_construction, params.seed), (8, 50, 3));
        assert_eq!(settings.json, Some(PathBuf::from("-")));
        let line = "--base b --queries q --limit 4 --serve --metric cosine --index hnsw";
        let settings = read(line).expect("valid");
        assert_eq!((settings.limit, settings.serve), (Some(4), true));
        assert_eq!(settings.metric, Metric::Cosine);
    }

    #[test]
    fn a_graph_is_named_by_its_quantization_too() {
        for (flags, index) in [
            ("--quantization rabitq", Choice::Rabitq),
            ("--index hnsw --quantization sq8", Choice::Sq8),
            ("--index hnsw --quantization none", Choice::Hnsw),
            ("--index sq8 --quantization sq8", Choice::Sq8),
            ("--index flat --quantization none", Choice::Flat),
        ] {
            let settings = read(&format!("--base b --queries q {flags}")).expect("valid");
            assert_eq!(settings.index, index, "{flags}");
            let codes = matches!(index, Choice::Rabitq | Choice::Sq8);
            let ef = if codes { 160 } else { 200 };
            assert_eq!(settings.params.ef_construction, ef, "{flags}");
            let line = format!("--base b --queries q --ef-construction 50 {flags}");
            match read(&line) {
                Ok(settings) => assert_eq!(settings.params.ef_construction, 50, "{flags}"),
                Err(refused) => assert!(index == Choice::Flat, "{flags}: {refused}"),
            }
        }
        let line = "--base b --queries q --index sq8 --quantization rabitq";
        let refused = read(line).expect_err("a wrong pair");
        assert!(
            refused.contains("rabitq") && refused.contains("--index sq8"),
            "{refused}"
        );
    }

    #[test]
    fn a_flag_that_would_count_for_nothing_is_refused() {
        for (flags, told) in [
            (
                "--index rabitq --m 8",
                "--m counts for nothing with --index rabitq",
            ),
            ("--quantization sq8 --m 8", "--index sq8"),
            ("--index flat --seed 8", "--seed"),
            ("--index flat --ef-construction 8", "--ef-construction"),
            ("--column v", "--column"),
            ("--sweep 10,5", "--sweep has 5"),
            ("--k 20 --sweep 10", "--k 20"),
        ] {
            let refused = read(&format!("--base b.npy --queries q.npy {flags}"));
            let refused = refused.expect_err(flags);
            assert!(refused.contains(told), "{flags}: {refused}");
        }
        let line = "--base b.parquet --queries q.npy --column v --metric dot_product";
        let settings = read(line).expect("valid");
        assert_eq!(settings.metric, Metric::Dot);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--base b",
            "--base b --queries q --metric manhattan",
            "--base b --queries q --index ivf",
            "--base b --queries q --quantization pq",
            "--base b --queries q --index flat --quantization rabitq",
            "--base b --queries q --index sq8 --quantization rabitq",
            "--base b --queries q --k 0",
            "--base b --queries q --sweep 0",
            "--base b --queries q --ef-construction 7",
            "--base b --queries q --truth t --limit 5",
            "--base b --queries q --serve --json -",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
