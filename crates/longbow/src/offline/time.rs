//! Times as text, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970, now; 0 on a clock that is before it.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// As RFC 3339 has it, with microseconds: `2026-11-21T14:38:42.000001Z`.
pub fn rfc3339(us: u64) -> String {
    let (year, month, day) = date(us / 1_000_000 / 86_400);
    let [hour, minute, second] = clock(us);
    let fraction = us % 1_000_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
}

/// Fit for the name of a folder: `20261121T143842Z`.
pub fn compact(us: u64) -> String {
    let (year, month, day) = date(us / 1_000_000 / 86_400);
    let [hour, minute, second] = clock(us);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

fn clock(us: u64) -> [u64; 3] {
    let second = us / 1_000_000 % 86_400;
    [second / 3600, second / 60 % 60, second % 60]
}

/// Year, month and day of a day counted from 1 January 1970, in the Gregorian calendar. Years are counted from March
/// here, so that the leap day is the last of a year, and months from March have 30.6 days on average.
fn date(day: u64) -> (u64, u64, u64) {
    // Days from 1 March of year 0.
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let january = u64::from(month >= 10);
    (
        era * 400 + year + january,
        month + 3 - 12 * january,
        of_month,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_told_right() {
        let cases = [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (951_868_800_000_000, "2000-03-01T00:00:00.000000Z"),
            (1_735_689_599_000_000, "2024-12-31T23:59:59.000000Z"),
            (1_795_271_922_000_001, "2026-11-21T14:38:42.000001Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
        ];
        for (us, text) in cases {
            assert_eq!(rfc3339(us), text);
        }
        assert_eq!(compact(1_795_271_922_000_001), "20261121T143842Z");
    }

    #[test]
    fn days_follow_each_other() {
        let mut before = date(0);
        assert_eq!(before, (1970, 1, 1));
        for day in 1..200_000 {
            let (year, month, of_month) = date(day);
            let follows = (year, month) == (before.0, before.1) && of_month == before.2 + 1
                || of_month == 1 && before.2 >= 28 && (year, month) == next_month(before);
            assert!(follows, "{before:?}, then {year}-{month}-{of_month}");
            before = (year, month, of_month);
        }
    }

    fn next_month((year, month, _): (u64, u64, u64)) -> (u64, u64) {
        match month {
            12 => (year + 1, 1),
            _ => (year, month + 1),
        }
    }
}
