//! What a user may type for a link, checked before anything is started.

use std::fmt;
use std::str::FromStr;

use mechanism::{Capabilities, Folder, Mechanism, OpenError, Options, Order, SpecProblem};
use model::{Spec, SpecError};
use thiserror::Error;

use super::Link;

/// A mechanism that can stand between two programs, with options that mean something there.
#[derive(Clone)]
pub struct LinkSpec {
    text: String,
    mechanism: &'static dyn Mechanism,
    options: Options,
}

/// Why a text names no link. Each is a mistake on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LinkProblem {
    /// Not the shape of a spec.
    #[error(transparent)]
    Text(#[from] SpecError),
    /// No such mechanism, or an option it does not take.
    #[error(transparent)]
    Spec(#[from] SpecProblem),
    /// A mechanism without descriptors that two programs could have.
    #[error("`{mechanism}` cannot stand between two programs; these can: {links}")]
    NotALink {
        /// The mechanism.
        mechanism: &'static str,
        /// Those that can.
        links: String,
    },
    /// An option that says how the ends of a measurement behave.
    #[error("`{option}` of `{mechanism}` is for measuring; between two programs it takes: {known}")]
    MeasuringOnly {
        /// The mechanism.
        mechanism: &'static str,
        /// The option.
        option: String,
        /// The options of the link.
        known: String,
    },
}

impl LinkSpec {
    /// Reads a spec and checks that it can be a link; whether this machine grants it shows when it is connected.
    ///
    /// # Errors
    /// What is wrong with the text, and what would be right.
    pub fn parse(text: &str) -> Result<Self, LinkProblem> {
        let spec: Spec = text.parse()?;
        let (mechanism, options) = mechanism::resolve(&spec)?;
        let descriptor = mechanism.descriptor();
        if !descriptor.capabilities.contains(Capabilities::LINK) {
            return Err(LinkProblem::NotALink {
                mechanism: descriptor.name,
                links: Self::names().collect::<Vec<_>>().join(", "),
            });
        }
        let known = descriptor.link_options;
        if let Some(option) = spec.options.keys().find(|option| !known.contains(&option.as_str())) {
            return Err(LinkProblem::MeasuringOnly {
                mechanism: descriptor.name,
                option: option.clone(),
                known: if known.is_empty() { "no option".to_owned() } else { known.join(", ") },
            });
        }
        Ok(Self { text: text.to_owned(), mechanism, options })
    }

    /// The mechanisms that can be links, in the order of the registry.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let descriptors = mechanism::all().iter().map(|mechanism| mechanism.descriptor());
        descriptors
            .filter(|descriptor| descriptor.capabilities.contains(Capabilities::LINK))
            .map(|descriptor| descriptor.name)
    }

    /// The options that a link of this name takes; none where there is no such link.
    pub fn options_of(name: &str) -> &'static [&'static str] {
        let mut descriptors = mechanism::all().iter().map(|mechanism| mechanism.descriptor());
        descriptors.find(|descriptor| descriptor.name == name).map_or(&[], |found| found.link_options)
    }

    /// When the reading program may start: with the writer, or, through a file, after it.
    pub fn order(&self) -> Order {
        Order::of(&self.options)
    }

    /// Whether a shell could make it by itself: a pipe, of whatever size.
    pub fn is_pipe(&self) -> bool {
        self.mechanism.descriptor().name == "pipe"
    }

    /// Whether its size was said.
    pub fn is_sized(&self) -> bool {
        self.text.contains("size=")
    }

    /// Whether it makes names in a file system, which want a folder of their own.
    pub fn has_names(&self) -> bool {
        self.mechanism.descriptor().capabilities.contains(Capabilities::NEEDS_CLEANUP)
    }

    /// Why it cannot be had, and what to do about it.
    pub(crate) fn refusal(&self, error: &OpenError) -> String {
        let remedy = error.remedy().map(|remedy| format!(": {remedy}")).unwrap_or_default();
        format!("link {}: {error}{remedy}", self.text)
    }

    /// Opens both ends, and starts the relay where one is needed. Names that must live in a file system are made
    /// in `folder`, or where `dir=` says; nobody else may use the folder.
    ///
    /// # Errors
    /// A limit that an option exceeds, or the system's refusal.
    pub fn connect(&self, folder: &Folder) -> Result<Link, OpenError> {
        let ends = self.mechanism.connect(&self.options, folder).unwrap_or_else(|| {
            // The registry's own test holds the two together: what says that it is a link connects.
            Err(OpenError::Unsupported {
                message: format!("`{}` cannot stand between two programs", self.text),
                remedy: "another link".to_owned(),
            })
        })?;
        Link::between(self.text.clone(), ends)
    }
}

impl FromStr for LinkSpec {
    type Err = LinkProblem;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LinkSpec").field(&self.text).finish()
    }
}

impl PartialEq for LinkSpec {
    /// The same mechanism with the same options, however typed.
    fn eq(&self, other: &Self) -> bool {
        self.mechanism.descriptor().name == other.mechanism.descriptor().name && self.options == other.options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_prints_as_it_was_typed() {
        for text in ["pipe", "pipe:size=64k", "tcp:nodelay,sndbuf=1MiB", "file:sync,order=sequential", "pty"]
        {
            assert_eq!(LinkSpec::parse(text).map(|spec| spec.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn order_is_parallel_unless_the_spec_says_otherwise() {
        let order = |text| LinkSpec::parse(text).expect("a link").order();
        assert_eq!(order("tmpfile"), Order::Parallel);
        assert_eq!(order("pipe"), Order::Parallel);
        assert_eq!(order("tmpfile:order=parallel"), Order::Parallel);
        assert_eq!(order("file:order=sequential"), Order::Sequential);
    }

    #[test]
    fn what_cannot_be_a_link_says_what_can() {
        let message =
            |text| LinkSpec::parse(text).err().map(|problem| problem.to_string()).unwrap_or_default();
        assert!(
            message("shm-ring").contains("pipe, fifo, socketpair, unix-stream, tcp"),
            "{}",
            message("shm-ring")
        );
        assert!(message("pip").contains("did you mean `pipe`?"));
        assert!(message("pipe:siez=1k").contains("did you mean `size`?"));
        assert!(message("pipe:send=vmsplice").contains("between two programs it takes: size"));
        assert!(message("tmpfile:order=later").contains("parallel, sequential"));
        assert!(message("").contains("names no mechanism"));
    }
}
