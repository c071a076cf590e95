//! Curves as an SVG picture: no dependency, no font but the reader's own.

use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 54.0;

/// Colours that are told apart by readers with any kind of colour vision (Okabe and Ito, 2008).
const COLOURS: [&str; 7] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
];

/// Points joined by a line.
pub struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

/// How an axis tells values apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// By their differences.
    Linear,
    /// By their ratios; it has no place for zero.
    Log,
}

/// What an axis tells, and how.
#[derive(Debug, Clone, Copy)]
pub struct Label(pub &'static str, pub Scale);

/// Curves on common axes.
pub struct Panel {
    /// What stands above.
    pub title: &'static str,
    /// To the right.
    pub x: Label,
    /// Upwards.
    pub y: Label,
    /// The curves.
    pub series: Vec<Series>,
}

/// The picture of these panels, one below the other; `None` if none of them has a point.
pub fn draw(panels: Vec<Panel>) -> Option<String> {
    let mut panels = panels;
    panels.retain(|panel| !panel.series.is_empty());
    if panels.is_empty() {
        return None;
    }
    let height = HEIGHT * panels.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        // Writing into a string can't fail.
        let _ = writeln!(out, "<g transform=\"translate(0 {})\">", HEIGHT * i as f64);
        panel.draw(&mut out);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    Some(out)
}

/// Points by the name of their series, in order. Those at zero are left out where an axis is [`Scale::Log`].
pub fn gather(
    (x, y): (Scale, Scale),
    points: impl Iterator<Item = (String, f64, f64)>,
) -> Vec<Series> {
    let mut gathered: Vec<Series> = Vec::new();
    let has_place = |scale, value| scale == Scale::Linear || value > 0.0;
    for (name, x, y) in points.filter(|(_, at, up)| has_place(x, *at) && has_place(y, *up)) {
        match gathered.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push((x, y)),
            None => gathered.push(Series {
                name,
                points: vec![(x, y)],
            }),
        }
    }
    for series in &mut gathered {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    gathered
}

/// An axis between two places of the picture.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Wide enough for all values.
    fn over(
        scale: Scale,
        values: impl Iterator<Item = f64> + Clone,
        (from, to): (f64, f64),
    ) -> Axis {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        // Some air, and a width even for a single value.
        let (low, high) = match scale {
            Scale::Log => (least / 1.3, most * 1.3),
            Scale::Linear => {
                let air = ((most - least) / 20.0).max(most / 1e4);
                ((least - air).max(0.0), most + air)
            }
        };
        Axis {
            scale,
            low,
            high,
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Log => (value / self.low).log10() / (self.high / self.low).log10(),
            Scale::Linear => (value - self.low) / (self.high - self.low),
        };
        self.from + share * (self.to - self.from)
    }

    /// Round values. By ratios: the powers of ten, with twice and five times of them where there are few. By differences: multiples of one
    /// of these, four to ten.
    fn ticks(&self) -> Vec<f64> {
        let between = |value: &f64| (self.low..=self.high).contains(value);
        if self.scale == Scale::Linear {
            let width = self.high - self.low;
            let ten = 10f64.powf((width / 5.0).log10().floor());
            let step = [5.0, 2.0, 1.0].map(|times| times * ten);
            let step = step
                .into_iter()
                .find(|step| width / step >= 4.0)
                .unwrap_or(ten);
            let first = (self.low / step).ceil() as i64;
            let last = (self.high / step).floor() as i64;
            return (first..=last).map(|at| at as f64 * step).collect();
        }
        let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
        let steps: &[f64] = if decades.clone().count() > 4 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        decades
            .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
            .filter(between)
            .collect()
    }
}

impl Panel {
    fn draw(&self, out: &mut String) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let most = self.series.iter().map(|series| series.points.len()).max();
        let radius = if most > Some(50) { 1.5 } else { 3.5 };
        let x = Axis::over(self.x.1, points.clone().map(|p| p.0), (LEFT, WIDTH - RIGHT));
        let y = Axis::over(self.y.1, points.map(|p| p.1), (HEIGHT - BOTTOM, TOP));
        self.frame(out, &x, &y);
        for (i, series) in self.series.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let places: Vec<String> = series
                .points
                .iter()
                .map(|point| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1)))
                .collect();
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                places.join(" ")
            );
            for point in &series.points {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" fill=\"{colour}\"><title>{}: {}, {}</title></circle>",
                    x.place(point.0),
                    y.place(point.1),
                    escaped(&series.name),
                    short(point.0),
                    short(point.1)
                );
            }
            let at = TOP + 8.0 + 18.0 * i as f64;
            let left = WIDTH - RIGHT + 16.0;
            let _ = writeln!(
                out,
                "<rect x=\"{left}\" y=\"{:.1}\" width=\"14\" height=\"4\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{at:.1}\">{}</text>",
                at - 6.0,
                left + 20.0,
                escaped(&series.name)
            );
        }
    }

    /// Title, axes, and lines at round values.
    fn frame(&self, out: &mut String, x: &Axis, y: &Axis) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let middle = f64::midpoint(TOP, bottom);
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{}</text>\n\
             <text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(20 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escaped(self.title),
            f64::midpoint(LEFT, right),
            HEIGHT - 14.0,
            escaped(self.x.0),
            escaped(self.y.0)
        );
        for tick in x.ticks() {
            let at = x.place(tick);
            let _ = writeln!(
                out,
                "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                short(tick)
            );
        }
        for tick in y.ticks() {
            let at = y.place(tick);
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                at + 4.0,
                short(tick)
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#333\"/>"
        );
    }
}

/// A number with as few characters as tell it.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_puts_its_values_between_its_ends() {
        let axis = Axis::over(Scale::Log, [1.0, 1000.0].into_iter(), (100.0, 700.0));
        let places = [1.0, 10.0, 1000.0].map(|value| axis.place(value));
        assert!(100.0 < places[0] && places[0] < places[1] && places[2] < 700.0);
        assert_eq!(axis.ticks(), [1.0, 10.0, 100.0, 1000.0]);
        let one = Axis::over(Scale::Log, [5.0].into_iter(), (0.0, 10.0));
        assert!((one.place(5.0) - 5.0).abs() < 1e-9);
        assert_eq!(one.ticks(), [5.0]);
        let linear = Axis::over(Scale::Linear, [0.0, 100.0].into_iter(), (0.0, 105.0));
        assert_eq!(linear.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!([0.0, 50.0].map(|value| linear.place(value)), [0.0, 50.0]);
        let one = Axis::over(Scale::Linear, [1.0].into_iter(), (0.0, 10.0));
        assert!((one.place(1.0) - 5.0).abs() < 1e-9 && one.ticks().contains(&1.0));
    }

    #[test]
    fn points_are_gathered_by_name_and_in_order() {
        let points = [
            ("a", 10.0, 1.0),
            ("b", 1.0, 5.0),
            ("a", 1.0, 2.0),
            ("a", 0.0, 1.0),
        ];
        let points = points.map(|(name, x, y)| (name.to_owned(), x, y));
        let series = gather((Scale::Log, Scale::Linear), points.into_iter());
        assert_eq!(series.len(), 2);
        assert_eq!(series[0].points, [(1.0, 2.0), (10.0, 1.0)]);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.05, 1.0, 12.5, 1000.0, 2_500_000.0].map(short);
        assert_eq!(shown, ["0.05", "1", "12.5", "1k", "2.5M"]);
        assert_eq!(escaped("a<b>&c"), "a&lt;b&gt;&amp;c");
    }
}
