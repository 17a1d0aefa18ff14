//! What the screen of the demonstration shows, and how it is laid out. Pure: a value, and a drawing of it.
//!
//! What there is no room for goes in this order: the legend, the names of ReplicaSets at pods, the columns of nodes, the nodes.

use std::collections::BTreeMap;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Borders, Paragraph, Wrap},
};

use super::{
    playback::{KEYS, KEYS_ASCII, Playback},
    scene::{Node, Pod, PodState, Standing},
};
use crate::{page, table::one_line};

/// The fewest columns in which nodes stand side by side.
const COLUMNS_MIN: u16 = 60;
/// The lines of text that there is always room for.
const TEXT_MIN: u16 = 5;

/// What is to be seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    /// The step that is being told.
    pub(super) title: String,
    pub(super) standings: Vec<Standing>,
    pub(super) nodes: Vec<Node>,
    /// The rules by which pods were chosen to go, by the names of the pods.
    pub(super) victims: BTreeMap<String, String>,
    /// What was said so far.
    pub(super) text: Vec<String>,
    /// Whether more than ASCII can be shown.
    pub(super) utf8: bool,
}

// === impl Picture ===

impl Picture {
    /// Draws it.
    pub(super) fn draw(&self, playback: Playback, frame: &mut Frame<'_>) {
        let area = frame.area();
        let sets = self.sets(area.width);
        let nodes = match area.width < COLUMNS_MIN {
            true => self.nodes_in_rows(area.width),
            false => self.nodes_in_columns(area.width),
        };
        let height = |lines: &[Line<'_>]| u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let left = area.height.saturating_sub(2 + TEXT_MIN);
        let sets_height = (height(&sets) + 1).min(left / 2);
        let nodes_height = (height(&nodes) + 1).min(left.saturating_sub(sets_height));
        let parts = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(sets_height),
            Constraint::Length(nodes_height),
            Constraint::Min(1),
            Constraint::Length(1),
        ]);
        let [head, upper, middle, lower, foot] = parts.areas(area);
        self.draw_head(playback, frame, head);
        draw_panel(frame, upper, "ReplicaSets".to_owned(), sets);
        draw_panel(frame, middle, self.legend(area.width), nodes);
        self.draw_text(frame, lower);
        let keys = if self.utf8 { KEYS } else { KEYS_ASCII };
        let dim = Style::new().add_modifier(Modifier::DIM);
        frame.render_widget(Paragraph::new(Line::styled(keys, dim)), foot);
    }

    fn draw_head(&self, playback: Playback, frame: &mut Frame<'_>, area: Rect) {
        let bar = Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD);
        let state = format!(" {} ", playback.word());
        let width = u16::try_from(state.len()).unwrap_or(u16::MAX);
        let parts = Layout::horizontal([Constraint::Min(0), Constraint::Length(width)]);
        let [left, right] = parts.areas(area);
        let title = format!(" Decree: {}", self.title);
        frame.render_widget(Paragraph::new(title).style(bar), left);
        frame.render_widget(Paragraph::new(state).style(bar), right);
    }

    /// Draws the end of the text.
    fn draw_text(&self, frame: &mut Frame<'_>, area: Rect) {
        let room = usize::from(area.height.saturating_sub(1));
        let columns = usize::from(area.width.saturating_sub(1));
        let wrapped = |line: &String| page::wrap_at(line, columns);
        let mut lines: Vec<_> = self.text.iter().flat_map(wrapped).collect();
        lines.drain(..lines.len().saturating_sub(room));
        let lines = lines.into_iter().map(|line| Line::raw(one_line(&line)));
        draw_panel(frame, area, "What happens".to_owned(), lines.collect());
    }

    /// Returns a line for each ReplicaSet, and what the cluster refused it, in the cluster's words.
    fn sets(&self, width: u16) -> Vec<Line<'static>> {
        let longest = self.standings.iter().map(|it| it.path.len()).max();
        let longest = longest.unwrap_or(0).min(usize::from(width) / 2);
        let mut lines = Vec::new();
        for standing in &self.standings {
            let Standing {
                path,
                wanted,
                there,
                ready,
                going,
                failure,
                ..
            } = standing;
            let numbers = match width < COLUMNS_MIN {
                true => format!("{ready} of {wanted} ready"),
                false => format!("{wanted} wanted  {there} there  {ready} ready  {going} going"),
            };
            let line = format!(" {:longest$}  {numbers}", one_line(path));
            let is_open = !standing.is_settled();
            lines.push(Line::styled(line, colour(is_open, Color::Yellow)));
            if let Some(failure) = failure {
                let columns = usize::from(width.saturating_sub(2));
                let refused = format!("  refused: {}", one_line(failure));
                let wrapped = page::wrap_at(&refused, columns);
                lines.extend(
                    wrapped
                        .into_iter()
                        .map(|line| Line::styled(line, Color::Red)),
                );
            }
        }
        lines
    }

    /// Returns a row for each node, with the last parts of the names of its pods.
    fn nodes_in_rows(&self, width: u16) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for node in &self.nodes {
            let mut spans = vec![self.node_name(node)];
            let mut used = spans[0].width();
            for pod in &node.pods {
                let span = Span::styled(
                    format!(" {}{}", self.mark(pod), suffix(&pod.name)),
                    self.style(pod),
                );
                if used + span.width() > usize::from(width) {
                    lines.push(Line::from(std::mem::take(&mut spans)));
                    spans.push(Span::raw("   "));
                    used = 3;
                }
                used += span.width();
                spans.push(span);
            }
            lines.push(Line::from(spans));
        }
        lines
    }

    /// Returns the nodes side by side, with a pod on each line.
    fn nodes_in_columns(&self, width: u16) -> Vec<Line<'static>> {
        let count = self.nodes.len().clamp(1, usize::from(width / 20));
        let column = usize::from(width) / count;
        let mut lines = Vec::new();
        for nodes in self.nodes.chunks(count) {
            let names = nodes.iter().map(|node| fill(self.node_name(node), column));
            lines.push(Line::from_iter(names));
            let deepest = nodes.iter().map(|node| node.pods.len()).max().unwrap_or(0);
            for row in 0..deepest {
                let cells = nodes.iter().map(|node| match node.pods.get(row) {
                    Some(pod) => fill(self.cell(pod, column), column),
                    None => Span::raw(" ".repeat(column)),
                });
                lines.push(Line::from_iter(cells));
            }
        }
        lines
    }

    fn node_name(&self, node: &Node) -> Span<'static> {
        let name = match (&*node.name, node.answers) {
            ("", _) => " (no node)".to_owned(),
            (name, true) => format!(" {}", one_line(name)),
            (name, false) => format!(" {} (does not answer)", one_line(name)),
        };
        let style = colour(!node.answers, Color::Red).add_modifier(Modifier::BOLD);
        Span::styled(name, style)
    }

    /// Returns a pod with the rule that chose it; its name is shortened where there is no room for both.
    fn cell(&self, pod: &Pod, column: usize) -> Span<'static> {
        let rule = self.victims.get(&pod.name).map_or("", String::as_str);
        let name = one_line(&pod.name);
        let whole = format!(" {} {name} {rule}", self.mark(pod));
        let text = match whole.chars().count() < column {
            true => whole,
            false => format!(" {} {} {rule}", self.mark(pod), suffix(&name)),
        };
        Span::styled(text, self.style(pod))
    }

    fn mark(&self, pod: &Pod) -> char {
        let marks = match (self.is_chosen(pod), pod.state) {
            (true, _) => ['✗', 'X'],
            (_, PodState::Ready) => ['●', '*'],
            (_, PodState::NotReady) => ['○', 'o'],
            (_, PodState::Pending) => ['◌', '.'],
            (_, PodState::Terminating) => ['−', '-'],
            (_, PodState::Ended) => ['□', '#'],
            (_, PodState::Unknown) => ['?', '?'],
        };
        marks[usize::from(!self.utf8)]
    }

    /// Returns whether a pod was chosen and has not been asked to go.
    fn is_chosen(&self, pod: &Pod) -> bool {
        self.victims.contains_key(&pod.name)
            && !matches!(pod.state, PodState::Terminating | PodState::Ended)
    }

    fn style(&self, pod: &Pod) -> Style {
        let style = match pod.state {
            _ if self.is_chosen(pod) => Style::new().fg(Color::Red),
            PodState::Ready => Style::new().fg(Color::Green),
            PodState::NotReady | PodState::Pending => Style::new().fg(Color::Yellow),
            PodState::Terminating | PodState::Ended => Style::new().add_modifier(Modifier::DIM),
            PodState::Unknown => Style::new().fg(Color::Red),
        };
        match self.is_chosen(pod) {
            true => style.add_modifier(Modifier::BOLD),
            false => style,
        }
    }

    fn legend(&self, width: u16) -> String {
        let legend = match self.utf8 {
            true => "✗ chosen to go  ● ready  ○ not ready  ◌ pending  − terminating",
            false => "X chosen to go  * ready  o not ready  . pending  - terminating",
        };
        match width < 80 {
            true => "Nodes".to_owned(),
            false => format!("Nodes  {legend}"),
        }
    }
}

fn draw_panel(frame: &mut Frame<'_>, area: Rect, title: String, lines: Vec<Line<'_>>) {
    let block = Block::new()
        .borders(Borders::TOP)
        .border_style(Style::new().add_modifier(Modifier::DIM))
        .title(format!(" {title} "));
    let text = Paragraph::new(lines).block(block);
    frame.render_widget(text.wrap(Wrap { trim: false }), area);
}

fn colour(is_it: bool, colour: Color) -> Style {
    match is_it {
        true => Style::new().fg(colour),
        false => Style::new(),
    }
}

/// Returns a text of exactly so many columns.
fn fill(span: Span<'static>, columns: usize) -> Span<'static> {
    let cut: String = span.content.chars().take(columns - 1).collect();
    Span::styled(format!("{cut:columns$}"), span.style)
}

/// Returns what tells a pod from the others of its ReplicaSet.
fn suffix(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(_, suffix)| suffix)
}

#[cfg(test)]
mod tests;
