//! The flags of `longbow bench log`, and what they ask for.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use longbow_log::{SyncMode, frame_bytes};
use longbow_types::{Kind, Value};

use super::bench::Rounds;
use super::case::{Amount, Case, Mode, Syncing};
use super::plan::{Axes, What};

/// A quick run skips what it has not begun by then, so that it ends within 60 seconds.
const QUICK_BUDGET: Duration = Duration::from_secs(50);

/// Payload of an entry by default.
const ENTRY_BYTES: u64 = 1024;

/// What the log that is read again takes by default.
const RECOVERED_BYTES: u64 = 2 << 30;

/// What a command line asks for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The command.
    pub what: What,
    /// Where to measure.
    pub dir: PathBuf,
    /// What to vary.
    pub axes: Axes,
    /// How often.
    pub rounds: Rounds,
    /// After how long cases are skipped, if ever.
    pub budget: Option<Duration>,
    /// Where the JSON goes; `-` is standard output.
    pub json: Option<PathBuf>,
    /// Where the curves go.
    pub svg: Option<PathBuf>,
}

impl Settings {
    /// What is measured.
    pub fn cases(&self) -> Vec<Case> {
        match self.what {
            What::Stages | What::Recovery => Vec::new(),
            What::Report => self.axes.report(),
            what => self.axes.product(what),
        }
    }
}

/// The command `log` of `longbow bench`, with its commands.
pub fn command() -> clap::Command {
    let log = clap::Command::new("log")
        .about("Measure the write-ahead log against the raw disk, in the same run")
        .subcommand_required(true)
        .arg_required_else_help(true);
    What::ALL.into_iter().fold(log, |log, what| {
        let command = clap::Command::new(what.name()).about(about(what));
        log.subcommand(command.args(flags(what)))
    })
}

fn about(what: What) -> &'static str {
    match what {
        What::Throughput => "One caller, by default 10,000 entries one after the other",
        What::Latency => "One caller that waits for each of, by default, 1,000 entries",
        What::Concurrent => "Many callers at once, by default 10 with 1,000 entries each",
        What::Stages => "Where the time of one write goes, over, by default, 1,000 entries",
        What::Recovery => "How fast a log, by default of 2 GiB, is read again when it is opened",
        What::Report => {
            "All of it: the matrix of callers, batches and modes, and one thing varied at a time"
        }
    }
}

/// What a flag is for, and its default in a report and in the other commands, where it may have none.
fn help(what: What, text: &str, of_report: &str, of_others: &str) -> String {
    match (what, of_others) {
        (What::Report, _) => format!("{text} [default: {of_report}]"),
        (_, "") => text.to_owned(),
        (_, default) => format!("{text} [default: {default}]"),
    }
}

/// The flags that a command has. One that would change nothing is none of its flags.
fn flags(what: What) -> Vec<Arg> {
    let mut flags = flags_of_all(what);
    if what != What::Report {
        let text = match what {
            What::Recovery => "Entries in the log [default: 2 GiB of them]",
            _ => "Entries from each caller",
        };
        let text = text.to_owned();
        flags.push(one("entries", "N", text).value_parser(int(1, 1_000_000_000)));
    }
    if what == What::Recovery {
        let text = "Rounds, of which the median is told [default: 3]".to_owned();
        flags.retain(|flag| flag.get_id() != "sync");
        flags.push(one("repeat", "R", text).value_parser(int(1, 1000)));
    } else if what != What::Stages {
        flags.extend(flags_of_loads(what));
    }
    flags
}

fn flags_of_all(what: What) -> Vec<Arg> {
    let dir = "Where to measure, in a folder of its own that is removed afterwards [default: .]";
    let sizes = help(
        what,
        "Sizes of the log's files",
        "64MiB,16MiB,256MiB",
        "64MiB",
    );
    let syncs = match what {
        What::Stages => "fdatasync or dsync [default: fdatasync]".to_owned(),
        _ => {
            let text = "How entries are made durable: fdatasync, dsync, background, none";
            help(what, text, "all", "fdatasync")
        }
    };
    let json = "Writes the report as JSON; - for standard output, instead of the table";
    let quick =
        "Smaller and shorter, within 60 s: good enough to see that all works, not to compare";
    vec![
        one("dir", "DIR", dir.to_owned()).value_parser(value_parser!(PathBuf)),
        one(
            "entry-bytes",
            "BYTES",
            "Payload of an entry [default: 1024]".to_owned(),
        )
        .value_parser(bytes(1, 64 << 20)),
        many("segment-size", "BYTES", sizes).value_parser(bytes(64 << 10, 4 << 30)),
        many("sync", "METHOD", syncs).value_parser(sync),
        one("json", "FILE", json.to_owned()).value_parser(value_parser!(PathBuf)),
        Arg::new("quick")
            .long("quick")
            .action(ArgAction::SetTrue)
            .help(quick),
    ]
}

fn flags_of_loads(what: What) -> Vec<Arg> {
    let lingers = help(
        what,
        "How long the log waits for more to write",
        "0,1ms,5ms,10ms",
        "0",
    );
    let time = help(
        what,
        "How long a round lasts",
        "3",
        "until --entries are acknowledged",
    );
    let rounds = help(what, "Rounds, of which the median is told", "3", "1");
    let rate = "Entries a second offered, whether or not the log keeps up; latency counts from when an entry was due";
    let mut flags = vec![
        many("linger", "TIME", lingers).value_parser(span),
        one("seconds", "S", time).value_parser(seconds),
        one("repeat", "R", rounds).value_parser(int(1, 1000)),
        one("svg", "FILE", "Draws the curves".to_owned()).value_parser(value_parser!(PathBuf)),
        many("rate", "N", help(what, rate, "1000,10000,50000", ""))
            .value_parser(int(1, 100_000_000)),
    ];
    if matches!(what, What::Concurrent | What::Report) {
        let callers = help(what, "Threads that hand in entries", "1,10,50,100", "10");
        flags.push(many("callers", "N", callers).value_parser(int(1, 1024)));
    }
    if what != What::Latency {
        let batch = help(what, "Entries in one hand-in", "1,10,100,1000", "1");
        let modes = "blocking: a caller waits for a batch before the next; tasks: the same, but all callers are tasks of \
                 one thread; pipelined: a caller has four under way";
        flags.extend([
            many("batch", "N", batch).value_parser(int(1, 100_000)),
            many("mode", "MODE", help(what, modes, "all", "blocking")).value_parser(mode),
        ]);
    }
    flags
}

fn one(name: &'static str, value: &'static str, help: String) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// A list, separated by commas.
fn many(name: &'static str, value: &'static str, help: String) -> Arg {
    one(name, value, help)
        .value_delimiter(',')
        .value_name(value)
}

fn read<T>(kind: Kind, text: &str, take: impl Fn(Value) -> Option<T>) -> Result<T, String> {
    let value = kind.parse(text).and_then(take);
    value.ok_or_else(|| format!("allowed: {}", kind.allowed()))
}

fn bytes(min: u64, max: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        read(Kind::Bytes(min, max), text, |value| match value {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        })
    }
}

fn int(min: u64, max: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        read(Kind::Int(min, max), text, |value| match value {
            Value::Int(n) => Some(n),
            _ => None,
        })
    }
}

fn span(text: &str) -> Result<Duration, String> {
    read(Kind::Span(0, 1000), text, |value| match value {
        Value::Span(time) => Some(time),
        _ => None,
    })
}

fn seconds(text: &str) -> Result<f64, String> {
    read(Kind::Float(0.01, 3600.0), text, |value| match value {
        Value::Float(seconds) => Some(seconds),
        _ => None,
    })
}

fn sync(text: &str) -> Result<Syncing, String> {
    let found = Syncing::ALL.iter().find(|sync| sync.name() == text);
    found
        .copied()
        .ok_or_else(|| "allowed: fdatasync, dsync, background or none".to_owned())
}

fn mode(text: &str) -> Result<Mode, String> {
    let modes = [Mode::Blocking, Mode::Tasks, Mode::Pipelined];
    let found = modes.iter().find(|mode| mode.name() == text);
    found
        .copied()
        .ok_or_else(|| "allowed: blocking or pipelined".to_owned())
}

/// What was given, of a flag that the command may not have.
fn given<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Option<T> {
    matches.try_get_one::<T>(name).ok().flatten().cloned()
}

fn list<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    name: &str,
    default: &[T],
) -> Vec<T> {
    let given = matches.try_get_many::<T>(name).ok().flatten();
    given.map_or_else(|| default.to_vec(), |values| values.cloned().collect())
}

/// What the matches of `log` ask for, or what is wrong with it.
pub fn settings(matches: &ArgMatches) -> Result<Settings, String> {
    let found = matches.subcommand().and_then(|(name, matches)| {
        let what = What::ALL.into_iter().find(|what| what.name() == name)?;
        Some((what, matches))
    });
    let (what, matches) = found.ok_or("bench log: no command was named")?;
    let quick = matches.get_flag("quick");
    let axes = axes(what, quick, matches)?;
    let round = match axes.amount {
        Amount::Time(time) => time,
        Amount::Entries(_) => Duration::from_secs(if quick { 1 } else { 2 }),
    };
    let repeat = match (what, quick) {
        (What::Report | What::Recovery, _) => 3,
        _ => 1,
    };
    let settings = Settings {
        what,
        dir: given(matches, "dir").unwrap_or_else(|| PathBuf::from(".")),
        axes,
        rounds: Rounds {
            repeat: given(matches, "repeat").unwrap_or(repeat),
            warm_up: (round / 3).min(Duration::from_secs(1)),
            raw: round / 2,
        },
        budget: quick.then_some(QUICK_BUDGET),
        json: given(matches, "json"),
        svg: given(matches, "svg"),
    };
    let syncs = &settings.axes.syncs;
    if what == What::Stages && syncs.iter().any(|sync| sync.mode() != SyncMode::EveryAck) {
        return Err(
            "stages: without a sync before the acknowledgement there is none to be timed; \
                    use --sync fdatasync or --sync dsync"
                .to_owned(),
        );
    }
    if what == What::Stages && settings.axes.syncs.len() + settings.axes.segment_sizes.len() > 2 {
        return Err("stages: name one --sync and one --segment-size".to_owned());
    }
    settings.cases().iter().try_for_each(Case::check)?;
    Ok(settings)
}

fn axes(what: What, quick: bool, matches: &ArgMatches) -> Result<Axes, String> {
    let report = what == What::Report;
    let ms = Duration::from_millis;
    let mib = |size: u64| size << 20;
    let (callers, batch): (&[u64], &[u64]) = match (what, quick) {
        (What::Report, true) => (&[1, 10, 100], &[1, 100, 1000]),
        (What::Report, false) => (&[1, 10, 50, 100], &[1, 10, 100, 1000]),
        (What::Concurrent, _) => (&[10], &[1]),
        _ => (&[1], &[1]),
    };
    let (sizes, lingers, rates): (Vec<u64>, Vec<Duration>, &[u64]) = match (report, quick) {
        (true, true) => (vec![mib(64), mib(16)], vec![ms(0), ms(1)], &[1000, 10_000]),
        (true, false) => (
            vec![mib(64), mib(16), mib(256)],
            vec![ms(0), ms(1), ms(5), ms(10)],
            &[1000, 10_000, 50_000],
        ),
        (false, _) => (vec![mib(64)], vec![ms(0)], &[]),
    };
    let all = [Mode::Blocking, Mode::Tasks, Mode::Pipelined];
    let syncs = if report {
        &Syncing::ALL[..]
    } else {
        &Syncing::ALL[..1]
    };
    let rates = list(matches, "rate", rates);
    let mut modes = list(matches, "mode", if report { &all } else { &all[..1] });
    if !report && !rates.is_empty() {
        if matches.try_contains_id("mode").unwrap_or(false) {
            return Err(
                "--rate and --mode exclude each other: an offered load waits for nothing"
                    .to_owned(),
            );
        }
        modes = rates.iter().copied().map(Mode::Offered).collect();
    }
    Ok(Axes {
        callers: list(matches, "callers", callers),
        batch: list(matches, "batch", batch),
        modes,
        syncs: list(matches, "sync", syncs),
        segment_sizes: list(matches, "segment-size", &sizes),
        lingers: list(matches, "linger", &lingers),
        rates,
        entry_bytes: given(matches, "entry-bytes").unwrap_or(ENTRY_BYTES),
        amount: amount(what, quick, matches)?,
    })
}

fn amount(what: What, quick: bool, matches: &ArgMatches) -> Result<Amount, String> {
    let time = |seconds| Amount::Time(Duration::from_secs_f64(seconds));
    let entries: Option<u64> = given(matches, "entries");
    let whole: u64 = match what {
        What::Throughput => 10_000,
        What::Latency | What::Concurrent | What::Stages => 1000,
        What::Recovery => {
            let entry_bytes = given(matches, "entry-bytes").unwrap_or(ENTRY_BYTES);
            (RECOVERED_BYTES / frame_bytes(entry_bytes)).max(10)
        }
        What::Report => {
            let default = if quick { 0.15 } else { 3.0 };
            return Ok(time(given(matches, "seconds").unwrap_or(default)));
        }
    };
    match (entries, given(matches, "seconds")) {
        (Some(_), Some(_)) => Err("--entries and --seconds exclude each other".to_owned()),
        (None, Some(seconds)) => Ok(time(seconds)),
        (Some(entries), None) => Ok(Amount::Entries(entries)),
        (None, None) => Ok(Amount::Entries(if quick { whole / 10 } else { whole })),
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
    fn defaults_of_the_four_commands() {
        for (line, callers, entries) in [
            ("throughput", 1, 10_000),
            ("latency", 1, 1000),
            ("concurrent", 10, 1000),
            ("concurrent --quick", 10, 100),
        ] {
            let settings = read(line).expect(line);
            let cases = settings.cases();
            assert_eq!(cases.len(), 1, "{line}");
            assert_eq!((cases[0].callers, cases[0].batch), (callers, 1), "{line}");
            assert_eq!(cases[0].amount, Amount::Entries(entries), "{line}");
            assert_eq!(cases[0].mode, Mode::Blocking, "{line}");
        }
        let report = read("report").expect("valid");
        let matrix = report.cases();
        let matrix = matrix.iter().filter(|case| case.test == "matrix");
        assert_eq!((matrix.count(), report.rounds.repeat), (4 * 4 * 3, 3));
    }

    #[test]
    fn lists_and_units_are_read() {
        let line = "concurrent --callers 2,4 --batch 8 --mode pipelined --sync dsync --segment-size 1MiB \
                    --linger 0,5ms --seconds 0.5 --repeat 7 --entry-bytes 2KiB --dir x --json - --svg y";
        let settings = read(line).expect("valid");
        assert_eq!(settings.axes.callers, [2, 4]);
        assert_eq!(settings.axes.syncs, [Syncing::Dsync]);
        assert_eq!(
            settings.axes.lingers,
            [Duration::ZERO, Duration::from_millis(5)]
        );
        assert_eq!(settings.axes.entry_bytes, 2048);
        assert_eq!(
            settings.axes.amount,
            Amount::Time(Duration::from_millis(500))
        );
        assert_eq!((settings.rounds.repeat, settings.cases().len()), (7, 4));
        assert_eq!(settings.json, Some(PathBuf::from("-")));
    }

    #[test]
    fn an_offered_load_takes_the_place_of_modes() {
        let settings = read("latency --rate 500,900").expect("valid");
        assert_eq!(
            settings.axes.modes,
            [Mode::Offered(500), Mode::Offered(900)]
        );
        let report = read("report --rate 700").expect("valid");
        assert_eq!(
            report.axes.modes,
            [Mode::Blocking, Mode::Tasks, Mode::Pipelined]
        );
        assert!(
            report
                .cases()
                .iter()
                .any(|case| case.mode == Mode::Offered(700))
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, words) in [
            ("report --callers 0", "--callers"),
            ("report --callers 1,x", "'x'"),
            ("report --entries 5", "--entries"),
            ("report --mode both", "blocking or pipelined"),
            (
                "throughput --sync fsync",
                "fdatasync, dsync, background or none",
            ),
            ("throughput --callers 5", "--callers"),
            ("throughput --linger 5", "from 0 to 1s"),
            ("latency --batch 5", "--batch"),
            ("concurrent --entries 5 --seconds 1", "exclude"),
            ("concurrent --rate 5 --mode blocking", "exclude"),
            (
                "concurrent --callers 1024 --batch 100000",
                "lower --callers",
            ),
            ("stages --sync none", "--sync fdatasync"),
            ("stages --sync fdatasync,dsync", "one --sync"),
            ("report --segment-size 1KiB", "from 64KiB"),
            ("report --seconds 0", "--seconds"),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
