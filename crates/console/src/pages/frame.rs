//! What stands around every page.

use askama::Template;

use super::assets::{ASSETS, Assets};
use super::text::Text;
use super::visitor::{Place, Visitor};

/// Around a page.
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) assets: &'static Assets,
    pub(crate) base: String,
    pub(crate) home: String,
    pub(crate) nav: Vec<NavItem>,
    pub(crate) actor: Text,
    pub(crate) role: &'static str,
    pub(crate) sign_out: Option<String>,
    pub(crate) notices: Vec<Notice>,
    /// Where the script hears that something changed.
    pub(crate) live: Option<String>,
}

pub(crate) struct NavItem {
    pub(crate) label: &'static str,
    pub(crate) key: &'static str,
    pub(crate) href: String,
    pub(crate) is_here: bool,
}

/// One thing that the page says before all else.
pub(crate) struct Notice {
    pub(crate) tone: &'static str,
    pub(crate) text: Text,
}

impl Notice {
    pub(crate) fn good(text: &str) -> Self {
        Self { tone: "good", text: Text::sentence(text) }
    }

    pub(crate) fn bad(text: &str) -> Self {
        Self { tone: "bad", text: Text::sentence(text) }
    }

    pub(crate) fn plain(text: &str) -> Self {
        Self { tone: "calm", text: Text::sentence(text) }
    }
}

/// Label, path, and the key that leads there behind a `g`.
const PAGES: &[(&str, &str, &str)] = &[
    ("Overview", "/", "o"),
    ("Runs", "/runs", "r"),
    ("Effects", "/effects", "e"),
    ("Events", "/events", "v"),
    ("Signals", "/signals", "s"),
    ("Workflows", "/workflows", "w"),
    ("Schedules", "/schedules", "c"),
    ("Audit", "/audit", "a"),
];

impl Frame {
    /// `section` is the label of the page's own entry, or that it belongs to.
    pub(crate) fn of(visitor: &Visitor, title: &str, section: &str) -> Self {
        let app = visitor.asked.text("app");
        let nav = PAGES.iter().map(|(label, path, key)| NavItem {
            label,
            key,
            href: visitor.to(path).maybe("app", app).done(),
            is_here: *label == section,
        });
        let identity = &visitor.caller.identity;
        let mut frame = Self {
            title: Text::name(title).as_str().to_owned(),
            assets: &ASSETS,
            base: visitor.base.clone(),
            home: visitor.to("/").done(),
            nav: nav.collect(),
            actor: Text::name(identity.actor()),
            role: identity.role().as_str(),
            sign_out: visitor.has_signed_in.then(|| visitor.to("/sign-out").done()),
            notices: Vec::new(),
            live: None,
        };
        frame.notices.extend(done(visitor.asked.text("done").unwrap_or_default()));
        if visitor.asked.text("unknown") == Some("page") {
            let text = "That address leads to no page: here is the one that comes next to it.";
            frame.notices.push(Notice::plain(text));
        }
        if !visitor.asked.unknown.is_empty() {
            let left = visitor.asked.unknown.join(", ");
            let text = format!("A part of the address is not known here and was left out: {left}");
            frame.notices.push(Notice::plain(&text));
        }
        frame
    }

    /// The page hears when something changes.
    pub(crate) fn live(mut self, address: String) -> Self {
        self.live = Some(address);
        self
    }

    pub(crate) fn notice(mut self, notice: Notice) -> Self {
        self.notices.push(notice);
        self
    }
}

/// What a verb came to, by a word in the address: never a text from it.
fn done(word: &str) -> Option<Notice> {
    let text = match word {
        "done" => "Done.",
        "canceled" => "The run is canceled.",
        "already_ended" => "The run had ended before: nothing was changed.",
        "will_cancel" => "The run will be canceled: it ends as soon as its worker sees that.",
        "will_cancel_after_effect" => "The run will be canceled once its effect is explained.",
        "redriven" => "The event is dispatched again: a worker creates its runs.",
        "switched" => "The activations are switched.",
        "unchanged" => "It stood so already: nothing was changed.",
        "activated" => "The version is live.",
        _ => return None,
    };
    Some(Notice::good(text))
}

/// Why there is no other page.
#[derive(Template)]
#[template(path = "failure.html")]
pub(crate) struct Failure {
    pub(crate) frame: Frame,
    pub(crate) notice: Notice,
    pub(crate) home: String,
}

/// An app to choose.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) label: Text,
    pub(crate) is_chosen: bool,
}

impl Choice {
    pub(crate) fn new(value: &str, label: &str, is_chosen: bool) -> Self {
        Self { value: value.to_owned(), label: Text::name(label), is_chosen }
    }

    /// The apps of the store.
    pub(crate) fn apps(place: &Place) -> Vec<Self> {
        let of = |app: &surefoot_kernel_core::App| {
            Self::new(app.as_str(), app.as_str(), *app == place.app)
        };
        place.apps.iter().map(of).collect()
    }
}
