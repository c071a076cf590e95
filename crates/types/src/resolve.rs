//! From flags, environment and file to settings: which value holds, and where it came from.

use crate::error::{ConfigError, Source};
use crate::host::Host;
use crate::inputs::{Given, Inputs};
use crate::options::{Availability, Config, OPTIONS, Spec};
use crate::value::Value;

/// One option with the value that holds.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The option.
    pub spec: &'static Spec,
    /// Its value.
    pub value: Value,
    /// Who set it.
    pub source: Source,
}

/// All options with their values, in the order of the table.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// One for each option.
    pub settings: Vec<Setting>,
}

impl Resolved {
    /// The settings that this version reads, typed.
    pub fn config(&self) -> Config {
        Config::from_settings(&self.settings)
    }
}

/// Finds the value of every option: flag over environment over file over default.
///
/// # Errors
/// An unknown name, a bad value, an option that is not available yet, or an address that other machines can reach without
/// `insecure`: see [`ConfigError`].
pub fn resolve(inputs: &Inputs) -> Result<Resolved, ConfigError> {
    // Later layers win. Every layer is checked whole, so that a bad value is found even where another one hides it.
    let mut settings = defaults(&inputs.host);
    for layer in [
        inputs.file_layer()?,
        inputs.environment_layer()?,
        inputs.flag_layer()?,
    ] {
        apply(&mut settings, layer, &inputs.host)?;
    }
    check_addresses(&settings)?;
    Ok(Resolved { settings })
}

fn defaults(host: &Host) -> Vec<Setting> {
    let of = |spec: &'static Spec| Setting {
        spec,
        value: default_of(spec, host),
        source: Source::Default,
    };
    OPTIONS.iter().map(of).collect()
}

fn default_of(spec: &Spec, host: &Host) -> Value {
    let text = spec.default_text(host);
    spec.kind.parse(&text).unwrap_or_else(|| {
        panic!(
            "the default of {} is not allowed: a test rules this out",
            spec.key
        )
    })
}

fn apply(settings: &mut [Setting], layer: Vec<Given>, host: &Host) -> Result<(), ConfigError> {
    let mut seen: Vec<(&str, Source)> = Vec::new();
    for Given { spec, text, source } in layer {
        if let Some((_, first)) = seen.iter().find(|(key, _)| *key == spec.key) {
            return Err(ConfigError::SetTwice {
                name: spec.key,
                first: first.clone(),
                second: source,
            });
        }
        seen.push((spec.key, source.clone()));
        let Some(value) = spec.kind.parse(&text) else {
            let value = text.chars().take(200).collect();
            return Err(ConfigError::BadValue {
                name: spec.key,
                value,
                origin: source,
                allowed: spec.kind.allowed(),
            });
        };
        let default = default_of(spec, host);
        if spec.availability == Availability::NotYet && value != default {
            let (value, default) = (value.to_string(), default.to_string());
            return Err(ConfigError::NotYet {
                name: spec.key,
                value,
                origin: source,
                default,
            });
        }
        if let Some(setting) = settings
            .iter_mut()
            .find(|setting| setting.spec.key == spec.key)
        {
            (setting.value, setting.source) = (value, source);
        }
    }
    Ok(())
}

fn check_addresses(settings: &[Setting]) -> Result<(), ConfigError> {
    if settings
        .iter()
        .any(|setting| setting.spec.key == "insecure" && setting.value == Value::Flag(true))
    {
        return Ok(());
    }
    for Setting {
        spec,
        value,
        source,
    } in settings
    {
        if let Value::Addr(addr) = value
            && !addr.ip().to_canonical().is_loopback()
        {
            return Err(ConfigError::Exposed {
                name: spec.key,
                addr: *addr,
                origin: source.clone(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::ConfigFile;
    use proptest::prelude::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn inputs(flags: &[(&str, &str)], environment: &[(&str, &str)], file: &str) -> Inputs {
        let file = ConfigFile {
            path: "long.toml".into(),
            text: file.into(),
        };
        Inputs {
            flags: pairs(flags),
            environment: pairs(environment),
            file: Some(file),
            host: Host::example(),
        }
    }

    fn refused(flags: &[(&str, &str)], environment: &[(&str, &str)], file: &str, words: &[&str]) {
        let message = resolve(&inputs(flags, environment, file))
            .expect_err("to be refused")
            .to_string();
        for word in words {
            assert!(message.contains(word), "{word:?} in {message:?}");
        }
    }

    #[test]
    fn a_flag_wins_over_the_environment_over_the_file_over_the_default() {
        let file = "hnsw_m = 4\nhnsw_ef_search = 70\ndata_path = \"/f\"";
        let environment = [
            ("LONGBOW_HNSW_M", "8"),
            ("LONGBOW_HNSW_EF_SEARCH", "80"),
            ("HOME", "/root"),
        ];
        let resolved = resolve(&inputs(&[("hnsw-m", "32")], &environment, file)).expect("valid");
        let config = resolved.config();
        assert_eq!(
            (
                config.hnsw_m,
                config.hnsw_ef_search,
                config.hnsw_ef_construction
            ),
            (32, 80, 200)
        );
        assert_eq!(config.data_path, std::path::PathBuf::from("/f"));
        let source = |key: &str| {
            let setting = resolved
                .settings
                .iter()
                .find(|setting| setting.spec.key == key);
            setting.expect("in the table").source.to_string()
        };
        assert_eq!(source("hnsw_m"), "flag --hnsw-m");
        assert_eq!(source("hnsw_ef_search"), "variable LONGBOW_HNSW_EF_SEARCH");
        assert_eq!(source("data_path"), "key data_path of long.toml");
        assert_eq!(source("node_id"), "default");
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        refused(
            &[("hnsw-n", "1")],
            &[],
            "",
            &["--hnsw-n", "did you mean --hnsw-m?"],
        );
        refused(
            &[],
            &[("LONGBOW_DATA_PTH", "x")],
            "",
            &["LONGBOW_DATA_PTH", "did you mean LONGBOW_DATA_PATH?"],
        );
        refused(
            &[],
            &[("LONGBOW_data_path", "x")],
            "",
            &["LONGBOW_DATA_PATH"],
        );
        refused(
            &[],
            &[],
            "memory_limits = 1",
            &["long.toml", "did you mean memory_limit?"],
        );
        refused(
            &[],
            &[("LONGBOW_COLOUR", "x")],
            "",
            &["unknown setting: variable LONGBOW_COLOUR; `longbow config`"],
        );
    }

    #[test]
    fn bad_values_are_refused_with_what_is_allowed() {
        refused(
            &[("hnsw-m", "1")],
            &[],
            "",
            &["hnsw_m", "\"1\"", "--hnsw-m", "from 2 to 128"],
        );
        refused(
            &[],
            &[("LONGBOW_WAL_LINGER", "soon")],
            "",
            &["wal_linger", "\"soon\"", "200ms"],
        );
        refused(
            &[],
            &[],
            "listen_addr = 3000",
            &["listen_addr", "\"3000\"", "127.0.0.1:3000"],
        );
        refused(&[], &[], "[hnsw_m]\nx = 1", &["hnsw_m", "whole number"]);
        refused(&[], &[], "hnsw_m = ", &["not valid TOML", "line 1"]);
        // Hidden by a flag, and still wrong.
        refused(
            &[("hnsw-m", "16")],
            &[("LONGBOW_HNSW_M", "many")],
            "",
            &["many"],
        );
    }

    #[test]
    fn an_alias_is_the_same_option_and_only_one_of_the_names_may_be_set() {
        let config = resolve(&inputs(&[], &[("LONGBOW_MAX_MEMORY", "1GiB")], ""))
            .expect("valid")
            .config();
        assert_eq!(config.memory_limit, 1 << 30);
        let config = resolve(&inputs(&[("storage-doput-batch-size", "7")], &[], ""))
            .expect("valid")
            .config();
        assert_eq!(config.doput_batch_size, 7);
        refused(
            &[],
            &[
                ("LONGBOW_MAX_MEMORY", "1GiB"),
                ("LONGBOW_MEMORY_LIMIT", "2GiB"),
            ],
            "",
            &[
                "memory_limit is set twice",
                "LONGBOW_MAX_MEMORY",
                "LONGBOW_MEMORY_LIMIT",
            ],
        );
    }

    #[test]
    fn what_is_not_built_is_refused_unless_it_stays_at_its_default() {
        refused(
            &[],
            &[("LONGBOW_TTL", "1h")],
            "",
            &["ttl", "\"1h\"", "not available in this version"],
        );
        refused(
            &[("gossip-enabled", "true")],
            &[],
            "",
            &["gossip_enabled", "not available"],
        );
        refused(
            &[],
            &[],
            "gossip_static_peers = [\"a\", \"b\"]",
            &["a,b", "not available"],
        );
        let same = [
            ("LONGBOW_GOSSIP_ENABLED", "0"),
            ("LONGBOW_GOSSIP_INTERVAL", "200 ms"),
            ("LONGBOW_S3_BUCKET", ""),
        ];
        resolve(&inputs(&[], &same, "")).expect("the defaults, spelled differently");
    }

    #[test]
    fn addresses_that_others_can_reach_need_insecure() {
        for (key, addr) in [
            ("listen_addr", "0.0.0.0:3000"),
            ("meta_addr", "[::]:0"),
            ("metrics_addr", "10.0.0.1:90"),
        ] {
            refused(
                &[],
                &[],
                &format!("{key} = {addr:?}"),
                &[key, addr, "--insecure", "127.0.0.1"],
            );
            let allowed = inputs(&[("insecure", "true")], &[], &format!("{key} = {addr:?}"));
            resolve(&allowed).expect("insecure was said");
        }
        resolve(&inputs(&[], &[], "listen_addr = \"[::1]:0\"")).expect("loopback");
        resolve(&inputs(&[], &[], "listen_addr = \"[::ffff:127.0.0.1]:0\"")).expect("loopback");
    }

    #[test]
    fn variables_of_services_and_tools_are_no_settings() {
        let links = [
            ("LONGBOW_SERVICE_HOST", "10.0.0.1"),
            ("LONGBOW_SERVICE_PORT", "3000"),
            ("LONGBOW_SERVICE_PORT_DATA", "3000"),
            ("LONGBOW_PORT", "tcp://10.0.0.1:3000"),
            ("LONGBOW_PORT_3000_TCP_ADDR", "10.0.0.1"),
            ("LONGBOW_META_PORT", "tcp://10.0.0.1:3001"),
            ("LONGBOW_BIN", "target/release/longbow"),
        ];
        resolve(&inputs(&[], &links, "")).expect("not ours");
        refused(&[], &[("LONGBOW_PORT", "3000")], "", &["LONGBOW_PORT"]);
    }

    proptest! {
        #[test]
        fn any_file_and_any_variable_is_taken_or_refused(text in "\\PC{0,200}|([a-z_]{1,12} = [0-9\"a-z\\[\\]]{0,9}\n){0,4}",
                                                         name in "[A-Z_]{0,30}", value in "\\PC{0,30}") {
            let name = format!("LONGBOW_{name}");
            let known = OPTIONS.iter().any(|spec| spec.variable == name);
            match resolve(&inputs(&[], &[(&name, &value)], &text)) {
                Ok(resolved) => prop_assert_eq!(resolved.settings.len(), OPTIONS.len()),
                Err(ConfigError::Unknown { origin: Source::Environment(_), .. }) => prop_assert!(!known),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
