//! Tables as the benchmarks print them and the documents show them.

#![expect(
    clippy::print_stdout,
    reason = "the tables are what benchmarks are for"
)]

/// Prints the head of a table, under a title; the first column is text, the others are figures.
pub fn head(title: &str, columns: &[&str]) {
    println!("\n### {title}\n\n| {} |", columns.join(" | "));
    println!("| --- |{}", " ---: |".repeat(columns.len() - 1));
}

/// Prints a row of a table.
pub fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// Sorts the values and returns the element below which `share` of them lie; NaN without values.
pub fn quantile_of(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(values, share)
}

/// Returns the element below which `share` of the sorted values lie; NaN without values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let place = (last as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}
