//! The text format of Prometheus, read strictly: what a scraper would only shrug at is an error.

use std::collections::{BTreeMap, BTreeSet};

/// A page of metrics that keeps every rule of the format, and those of `promtool check metrics`: families in one piece
/// with help and type, names and labels of the right form, no series twice, counters that end in `_total`, spans in
/// seconds, and histograms whose buckets grow and add up.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposition {
    kinds: BTreeMap<String, String>,
    values: BTreeMap<String, f64>,
}

impl Exposition {
    /// Reads a page.
    ///
    /// # Errors
    /// The first line that breaks a rule, with the rule.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.ends_with('\n') {
            return Err("the last line does not end".to_owned());
        }
        let mut page = Self { kinds: BTreeMap::new(), values: BTreeMap::new() };
        let (mut helped, mut family) = (BTreeSet::new(), String::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, about) = help.split_once(' ').ok_or(format!("no help: {line}"))?;
                if about.trim().is_empty() || !helped.insert(name.to_owned()) {
                    return Err(format!("help is empty or there twice: {line}"));
                }
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').ok_or(format!("no type: {line}"))?;
                if !helped.contains(name) {
                    return Err(format!("a type without help before it: {line}"));
                }
                check_name(name, kind)?;
                if page.kinds.insert(name.to_owned(), kind.to_owned()).is_some() {
                    return Err(format!("the family is not in one piece: {line}"));
                }
                name.clone_into(&mut family);
            } else {
                page.sample(&family, line)?;
            }
        }
        page.check_histograms()?;
        Ok(page)
    }

    /// The value of a series, written as on the page: `name{label="value"}`.
    #[must_use]
    pub fn value(&self, series: &str) -> Option<f64> {
        self.values.get(series).copied()
    }

    /// The series that are not zero.
    #[must_use]
    pub fn counted(&self) -> BTreeMap<&str, f64> {
        let all = self.values.iter().map(|(series, value)| (series.as_str(), *value));
        all.filter(|(_, value)| *value != 0.0).collect()
    }

    /// The names that samples have.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        self.values.keys().map(|series| name_of(series)).collect()
    }

    fn sample(&mut self, family: &str, line: &str) -> Result<(), String> {
        let (series, value) = line.rsplit_once(' ').ok_or(format!("no sample: {line}"))?;
        let name = name_of(series);
        let kind = self.kinds.get(family).map_or("", String::as_str);
        let part = name.strip_prefix(family).unwrap_or("?");
        let fits = match kind {
            "histogram" => ["_bucket", "_sum", "_count"].contains(&part),
            _ => part.is_empty(),
        };
        if !fits {
            return Err(format!("a sample outside of its family: {line}"));
        }
        check_labels(series.get(name.len()..).unwrap_or_default())
            .map_err(|why| format!("{why}: {line}"))?;
        let value: f64 = value.parse().map_err(|_| format!("no number: {line}"))?;
        if kind != "gauge" && !(value.is_finite() && value >= 0.0) {
            return Err(format!("a count that is negative or not finite: {line}"));
        }
        match self.values.insert(series.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(format!("the series is there twice: {line}")),
        }
    }

    /// Buckets stand in the order of their bounds; a map of texts does not, so they are put into it here.
    fn check_histograms(&self) -> Result<(), String> {
        let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (series, count) in &self.values {
            let Some((head, rest)) = series.split_once("_bucket{") else { continue };
            let (labels, bound) = rest.split_once("le=\"").ok_or(format!("no bound: {series}"))?;
            let bound = bound.trim_end_matches("\"}");
            let bound: f64 = bound.parse().map_err(|_| format!("no bound: {series}"))?;
            let labels = labels.trim_end_matches(',');
            buckets.entry(format!("{head}_count{{{labels}}}")).or_default().push((bound, *count));
        }
        for (count, mut buckets) in buckets {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            let grows = buckets.is_sorted_by(|a, b| a.1 <= b.1);
            let last = buckets.last().copied();
            let total = self.value(&count);
            if !grows || last.map(|(bound, _)| bound) != Some(f64::INFINITY) {
                return Err(format!("buckets do not grow up to +Inf: {count}"));
            }
            if total.is_none() || last.map(|(_, value)| value) != total {
                return Err(format!("the last bucket is not the count: {count}"));
            }
            if self.value(&count.replacen("_count{", "_sum{", 1)).is_none() {
                return Err(format!("a histogram without a sum: {count}"));
            }
        }
        Ok(())
    }
}

fn name_of(series: &str) -> &str {
    series.split('{').next().unwrap_or(series)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_lowercase())
        && text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
}

fn check_name(name: &str, kind: &str) -> Result<(), String> {
    let is_counter = match kind {
        "counter" => true,
        "gauge" | "histogram" => false,
        other => return Err(format!("an unknown type: {name} {other}")),
    };
    if !is_word(name) {
        return Err(format!("no name of a metric: {name}"));
    }
    if name.ends_with("_total") != is_counter {
        return Err(format!("counters, and only they, end in _total: {name}"));
    }
    let reserved = ["_sum", "_count", "_bucket"].iter().any(|end| name.ends_with(end));
    let other_unit = name.split('_').any(|part| ["ms", "us", "milliseconds"].contains(&part));
    if reserved || other_unit {
        return Err(format!("a name for something else: {name}"));
    }
    Ok(())
}

/// `{a="b",c="d"}`, or nothing.
fn check_labels(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Ok(());
    }
    let inside = text.strip_prefix('{').and_then(|it| it.strip_suffix('}')).ok_or("no labels")?;
    let (mut rest, mut names) = (inside, BTreeSet::new());
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").ok_or("a label without a value")?;
        if !is_word(name) || !names.insert(name) {
            return Err("a label's name is malformed or there twice");
        }
        let end = end_of(after).ok_or("a label's value does not end")?;
        rest = after.get(end.saturating_add(1)..).unwrap_or_default();
        match rest.strip_prefix(',') {
            Some(next) if !next.is_empty() => rest = next,
            None if rest.is_empty() => {}
            Some(_) | None => return Err("labels are not separated by commas"),
        }
    }
    Ok(())
}

/// Where the quote is that ends a value; only `\\`, `\"` and `\n` are escapes.
fn end_of(value: &str) -> Option<usize> {
    let mut signs = value.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return Some(at),
            '\\' if !matches!(signs.next(), Some((_, '\\' | '"' | 'n'))) => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# HELP a_total So many.\n# TYPE a_total counter\na_total{app=\"x\\\"} 1\"} 2\n\
        # HELP b_seconds So long.\n# TYPE b_seconds histogram\n\
        b_seconds_bucket{le=\"1\"} 1\nb_seconds_bucket{le=\"+Inf\"} 2\nb_seconds_sum{} 7\n\
        b_seconds_count{} 2\n";

    #[test]
    fn a_page_that_keeps_the_rules_is_read() {
        let page = Exposition::parse(GOOD).unwrap();
        assert_eq!(page.value("a_total{app=\"x\\\"} 1\"}"), Some(2.0));
        assert_eq!(page.names().len(), 4);
    }

    #[test]
    fn a_page_that_breaks_one_is_not() {
        for (from, to) in [
            ("# HELP a_total So many.\n", ""),
            ("# TYPE a_total counter\n", ""),
            ("counter", "number"),
            ("counter", "gauge"),
            ("a_total", "a"),
            ("_total{app", "_total{App"),
            ("} 2\n#", "} two\n#"),
            ("} 2\n#", "} -2\n#"),
            ("x\\\"} 1", "x\"} 1"),
            ("x\\\"} 1", "x\\} 1"),
            ("{le=\"1\"} 1", "{le=\"1\"} 3"),
            ("b_seconds_bucket{le=\"+Inf\"} 2\n", ""),
            ("b_seconds_sum{} 7\n", ""),
            ("b_seconds_count{} 2", "b_seconds_count{} 3"),
            ("b_seconds_count{} 2", "c_count{} 2"),
            ("b_seconds", "b_ms"),
            ("b_seconds_sum{} 7\n", "b_seconds_sum{} 7\nb_seconds_sum{} 7\n"),
            ("_count{} 2\n", "_count{} 2"),
        ] {
            let bad = GOOD.replace(from, to);
            assert_ne!(bad, GOOD, "{from}");
            assert!(Exposition::parse(&bad).is_err(), "{bad}");
        }
    }
}
