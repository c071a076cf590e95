//! The flags of `longbow bench spfresh`, and what they ask for.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, value_parser};
use longbow_engine::{EFFORT_A_POSTING, IndexKind};

use super::recipe::Sizes;
use crate::args::{int, one, size};

/// Efforts that the recipe is searched with unless others are named.
const SWEEP: &str = "32,128,512";
/// The same of a large set.
const LARGE_SWEEP: &str = "8,16,32,64,128";
/// Rows around one centre of a mixture unless its number of centres is named.
const ROWS_A_CENTRE: usize = 100;
/// The memory limit of a large set, as a share of its vectors, and at least.
const MEMORY_SHARE: u64 = 10;
const LEAST_MEMORY: u64 = 64 << 20;
const MOST_MEMORY: u64 = 64 << 40;

/// What answers searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Postings in a file.
    SpFresh,
    /// A graph.
    Hnsw,
    /// A comparison with all rows.
    Exact,
}

impl Choice {
    const ALL: [Choice; 3] = [Choice::SpFresh, Choice::Hnsw, Choice::Exact];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Choice::SpFresh => "spfresh",
            Choice::Hnsw => "hnsw",
            Choice::Exact => "exact",
        }
    }

    /// The index that the column has.
    pub fn kind(self) -> IndexKind {
        match self {
            Choice::SpFresh => IndexKind::SpFresh,
            Choice::Hnsw => IndexKind::Hnsw,
            Choice::Exact => IndexKind::Flat,
        }
    }
}

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What is measured.
    pub what: What,
    /// What answers searches.
    pub index: Choice,
    /// Shards of postings.
    pub shards: usize,
    /// Neighbours asked for.
    pub k: usize,
    /// The effort of `--nprobe`.
    pub effort: usize,
    /// Rows of a write.
    pub update_batch: usize,
    /// From which all data is drawn.
    pub seed: u64,
    /// Whether writes are acknowledged only once they were synced; the recipe measures the other way, too, unless asked.
    pub durable: bool,
    /// Where to measure.
    pub dir: PathBuf,
    /// Where the JSON goes; `-` is standard output.
    pub json: Option<PathBuf>,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// Updates, then searches.
    Recipe {
        /// What with.
        source: Source,
        /// Efforts beside that of `--nprobe`.
        sweep: Vec<usize>,
        /// How often.
        repeat: usize,
    },
    /// Searches while rows come and go.
    Stream {
        /// The rows.
        mixture: Shape,
        /// What is done; the default if none.
        runbook: Option<PathBuf>,
        /// Where the curves are drawn.
        svg: Option<PathBuf>,
    },
    /// More rows than memory.
    Large {
        /// The rows.
        mixture: Shape,
        /// Efforts beside that of `--nprobe`.
        sweep: Vec<usize>,
        /// The engine's memory limit in bytes.
        memory_limit: u64,
    },
}

/// Where the recipe's data comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// It is drawn.
    Made(Sizes),
    /// A file of JSON.
    File(PathBuf),
}

/// A mixture of Gaussians.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Elements of a vector.
    pub dim: usize,
    /// Rows at the beginning.
    pub base: usize,
    /// Gaussians.
    pub centres: usize,
    /// How far the centres move: in a round of a stream, or while all of a large set comes; 1 is about their distance from
    /// the middle.
    pub drift: f32,
    /// Queries of a pass.
    pub queries: usize,
}

/// The command `spfresh` of `longbow bench`.
pub fn command() -> clap::Command {
    let path =
        |name, value, text: &str| one(name, value, text).value_parser(value_parser!(PathBuf));
    let modes = ["dataset", "stream", "large"];
    let efforts = format!("Efforts of further searches [default: {SWEEP}; large: {LARGE_SWEEP}]");
    clap::Command::new("spfresh")
        .about("Measure updates of the engine, and searches after and during them")
        .arg(int("dim", "Elements of a vector [default: 64]", 1, 65_536).conflicts_with("dataset"))
        .arg(int("base", "Rows at the beginning [default: 10000; large: 1000000]", 1, 1 << 40).conflicts_with("dataset"))
        .arg(int("updates", "Rows that are then replaced [default: 2000]", 1, 1 << 40).conflicts_with_all(modes))
        .arg(int("queries", "Queries of a pass [default: 200; stream: 100; large: 300]", 1, 1 << 24).conflicts_with("dataset"))
        .arg(int("update-batch", "Rows of a write [default: 1024]", 1, 1 << 20))
        .arg(int("k", "Neighbours asked for [default: 10]", 1, 1_000))
        .arg(int("shards", "Shards of postings, each with as many of the rows [default: 1]", 1, 64))
        .arg(int("nprobe", "Postings that a search reads, of all shards together: an effort of four times as much [default: 8]", 1, 16_384))
        .arg(int("seed", "From which all data is drawn [default: 404]", 0, i64::MAX).conflicts_with("dataset"))
        .arg(one("index", "INDEX", "What answers searches [default: spfresh]").value_parser(PossibleValuesParser::new(Choice::ALL.map(Choice::name))))
        .arg(int("repeat", "How often, of which the median is told [default: 3]", 1, 1_000).conflicts_with_all(["stream", "large"]))
        .arg(
            Arg::new("durable")
                .long("durable")
                .action(ArgAction::SetTrue)
                .help("Writes are acknowledged once they were synced; without it the recipe measures both ways"),
        )
        .arg(path("dataset", "FILE", "The recipe's data as JSON, in place of drawn data: base, updates, queries").conflicts_with_all(["stream", "large"]))
        .arg(int("sweep", efforts, 1, longbow_engine::MAX_EF as i64).value_delimiter(',').conflicts_with("stream"))
        .arg(path("stream", "FILE|default", "Rows come and go while searches run: lines of {\"insert\":N}, {\"delete\":N}, {\"search\":N}; default: 100 rounds in which a hundredth goes and as much comes").conflicts_with("large"))
        .arg(path("svg", "FILE", "Draws the rounds of a stream as curves: recall, latency, memory").requires("stream"))
        .arg(
            Arg::new("large")
                .long("large")
                .action(ArgAction::SetTrue)
                .help("More rows than memory: they are drawn piece by piece"),
        )
        .arg(int("centres", "Gaussians that rows are drawn from [default: one for each 100 rows]", 1, 1 << 24).requires("mixture"))
        .arg(
            one("drift", "X", "How far the centres move, in a round of a stream or over a large set [default: 0.02; large: 1]")
                .value_parser(value_parser!(f32))
                .requires("mixture"),
        )
        .arg(size("memory-limit", "The engine's memory limit [default: a tenth of the vectors, at least 64 MiB]", LEAST_MEMORY, MOST_MEMORY).requires("large"))
        .group(ArgGroup::new("mixture").args(["stream", "large"]))
        .arg(path("dir", "DIR", "Where to measure, in a folder of its own that is removed afterwards [default: the system's folder for temporary files]"))
        .arg(path("json", "FILE", "Writes the report as JSON; - for standard output, instead of the table"))
}

fn number(matches: &ArgMatches, name: &str, default: usize) -> usize {
    let number = matches.get_one::<i64>(name);
    number.map_or(default, |n| usize::try_from(*n).unwrap_or(usize::MAX))
}

/// What the matches of `spfresh` ask for, or what is wrong with it.
pub fn settings(matches: &ArgMatches) -> Result<Settings, String> {
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let number = |name, default| number(matches, name, default);
    let index = matches.get_one::<String>("index").map(String::as_str);
    let index = Choice::ALL
        .into_iter()
        .find(|choice| Some(choice.name()) == index);
    let (index, k) = (index.unwrap_or(Choice::SpFresh), number("k", 10));
    let what = what(matches)?;
    let rows = match &what {
        What::Recipe {
            source: Source::File(_),
            ..
        } => usize::MAX,
        What::Recipe {
            source: Source::Made(sizes),
            ..
        } => sizes.base,
        What::Stream { mixture, .. } | What::Large { mixture, .. } => mixture.base,
    };
    if k > rows {
        return Err(format!(
            "--k is {k} and --base {rows}; ask for fewer neighbours"
        ));
    }
    if index == Choice::Exact && !matches!(what, What::Recipe { .. }) {
        return Err("--index exact is for the recipe alone; choose spfresh or hnsw".to_owned());
    }
    Ok(Settings {
        what,
        index,
        shards: number("shards", 1),
        k,
        effort: number("nprobe", 8) * EFFORT_A_POSTING,
        update_batch: number("update-batch", 1_024),
        seed: number("seed", 404) as u64,
        durable: matches.get_flag("durable"),
        dir: path("dir").unwrap_or_else(std::env::temp_dir),
        json: path("json"),
    })
}

fn what(matches: &ArgMatches) -> Result<What, String> {
    let number = |name, default| number(matches, name, default);
    let sweep = |default: &str| match matches.get_many::<i64>("sweep") {
        Some(efforts) => efforts.filter_map(|n| usize::try_from(*n).ok()).collect(),
        None => default.split(',').filter_map(|n| n.parse().ok()).collect(),
    };
    let shape = |base: usize, queries: usize, drift: f32| -> Result<Shape, String> {
        let base = number("base", base);
        let drift = matches.get_one::<f32>("drift").copied().unwrap_or(drift);
        if !(0.0..=1e6).contains(&drift) {
            return Err(format!(
                "--drift is {drift}; give a number from 0 to 1000000"
            ));
        }
        Ok(Shape {
            dim: number("dim", 64),
            base,
            centres: number("centres", (base / ROWS_A_CENTRE).max(1)),
            drift,
            queries: number("queries", queries),
        })
    };
    if let Some(runbook) = matches.get_one::<PathBuf>("stream") {
        return Ok(What::Stream {
            mixture: shape(10_000, 100, 0.02)?,
            runbook: Some(runbook.clone()).filter(|path| path.as_os_str() != "default"),
            svg: matches.get_one::<PathBuf>("svg").cloned(),
        });
    }
    if matches.get_flag("large") {
        let mixture = shape(1_000_000, 300, 1.0)?;
        let vectors = (mixture.base as u64).saturating_mul(mixture.dim as u64 * 4);
        let limit = matches.get_one::<u64>("memory-limit").copied();
        return Ok(What::Large {
            mixture,
            sweep: sweep(LARGE_SWEEP),
            memory_limit: limit.unwrap_or((vectors / MEMORY_SHARE).max(LEAST_MEMORY)),
        });
    }
    Ok(What::Recipe {
        source: match matches.get_one::<PathBuf>("dataset") {
            Some(path) => Source::File(path.clone()),
            None => Source::Made(Sizes {
                dim: number("dim", 64),
                base: number("base", 10_000),
                updates: number("updates", 2_000),
                queries: number("queries", 200),
            }),
        },
        sweep: sweep(SWEEP),
        repeat: number("repeat", 3),
    })
}

impl Settings {
    /// The efforts that are measured, ascending: that of `--nprobe`, and those of the sweep.
    pub fn efforts(&self, sweep: &[usize]) -> Vec<usize> {
        let mut efforts = sweep.to_vec();
        efforts.push(self.effort);
        efforts.sort_unstable();
        efforts.dedup();
        efforts
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
        let settings = read("").expect("valid");
        let sizes = Sizes {
            dim: 64,
            base: 10_000,
            updates: 2_000,
            queries: 200,
        };
        let expected = What::Recipe {
            source: Source::Made(sizes),
            sweep: vec![32, 128, 512],
            repeat: 3,
        };
        assert_eq!(settings.what, expected);
        assert_eq!((settings.k, settings.effort, settings.seed), (10, 32, 404));
        assert_eq!((settings.update_batch, settings.durable), (1_024, false));
        assert_eq!(settings.efforts(&[512, 32]), [32, 512]);
        assert_eq!((settings.index, settings.json), (Choice::SpFresh, None));
        let shape = Shape {
            dim: 64,
            base: 10_000,
            centres: 100,
            drift: 0.02,
            queries: 100,
        };
        let expected = What::Stream {
            mixture: shape,
            runbook: None,
            svg: None,
        };
        assert_eq!(read("--stream default").expect("valid").what, expected);
        let What::Large { memory_limit, .. } = read("--large").expect("valid").what else {
            panic!("another mode");
        };
        assert_eq!(memory_limit, LEAST_MEMORY);
    }

    #[test]
    fn all_flags_are_read() {
        let line = "--dim 8 --base 50 --updates 5 --queries 6 --update-batch 7 --k 3 --nprobe 5 --seed 9 --index hnsw \
                    --sweep 5,9 --repeat 2 --durable --dir d --json -";
        let settings = read(line).expect("valid");
        let sizes = Sizes {
            dim: 8,
            base: 50,
            updates: 5,
            queries: 6,
        };
        let expected = What::Recipe {
            source: Source::Made(sizes),
            sweep: vec![5, 9],
            repeat: 2,
        };
        assert_eq!(settings.what, expected);
        assert_eq!((settings.k, settings.effort, settings.seed), (3, 20, 9));
        assert_eq!((settings.update_batch, settings.durable), (7, true));
        assert_eq!((settings.index, settings.dir), (Choice::Hnsw, "d".into()));
        assert_eq!(settings.json, Some("-".into()));
        let settings = read("--stream runs --svg s --centres 3 --drift 0.5 --base 40 --queries 4");
        let What::Stream {
            mixture,
            runbook,
            svg,
        } = settings.expect("valid").what
        else {
            panic!("another mode");
        };
        assert_eq!(
            (mixture.centres, mixture.drift, mixture.queries),
            (3, 0.5, 4)
        );
        assert_eq!((runbook, svg), (Some("runs".into()), Some("s".into())));
        let settings = read("--large --memory-limit 65MiB --sweep 7").expect("valid");
        let What::Large {
            memory_limit,
            sweep,
            ..
        } = settings.what
        else {
            panic!("another mode");
        };
        assert_eq!((memory_limit, sweep), (65 << 20, vec![7]));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--k 0",
            "--k 11 --base 10",
            "--sweep 0",
            "--index ivf",
            "--dataset f --dim 3",
            "--dataset f --stream default",
            "--stream default --large",
            "--stream default --sweep 5",
            "--stream default --updates 5",
            "--svg s",
            "--shards 65",
            "--stream default --index exact",
            "--stream default --drift -1",
            "--large --repeat 3",
            "--centres 5",
            "--drift 1",
            "--memory-limit 64MiB",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
