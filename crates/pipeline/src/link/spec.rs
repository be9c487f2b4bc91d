//! What a user may type for a link, checked before anything is started.

use std::fmt;

use mechanism::{Capabilities, Folder, Mechanism, OpenError, Options, Order, SpecProblem};
use model::{Spec, SpecError, nearest};
use thiserror::Error;

use super::{Link, refused};

/// What begins the way through another host.
pub(super) const SSH: &str = "ssh:";

/// The option that every link but a stored one has: `ends=pipe` gives both programs a pipe, with relays between it and the link.
const ENDS: &str = "ends";

/// A mechanism that can stand between two programs, with options that mean something there; or another host.
#[derive(Clone)]
pub struct LinkSpec {
    text: String,
    way: LinkWay,
}

#[derive(Clone)]
enum LinkWay {
    /// With `pipe_ends`, both programs get pipes.
    Mechanism { mechanism: &'static Mechanism, options: Options, pipe_ends: bool },
    /// What ssh(1) takes for a destination.
    Ssh(String),
}

/// Why a text names no link, and what would be right: a mistake on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LinkProblem(String);

impl LinkSpec {
    /// Reads a spec and checks that it can be a link; whether this machine grants it shows when it is connected.
    ///
    /// # Errors
    /// What is wrong with the text, and what would be right.
    pub fn parse(text: &str) -> Result<Self, LinkProblem> {
        if let Some(host) = text.strip_prefix(SSH) {
            let odd = |letter: char| letter.is_whitespace() || letter.is_control();
            if host.is_empty() || host.starts_with('-') || host.contains(odd) {
                let shown = model::one_line(text);
                return Err(LinkProblem(format!("`{shown}` names no host: ssh:HOST or ssh:USER@HOST")));
            }
            return Ok(Self { text: text.to_owned(), way: LinkWay::Ssh(host.to_owned()) });
        }
        let mut spec: Spec = text.parse().map_err(|problem: SpecError| LinkProblem(problem.to_string()))?;
        let ends = spec.options.remove(ENDS);
        let (mechanism, options) = mechanism::resolve(&spec).map_err(|problem| match problem {
            SpecProblem::UnknownMechanism { name, .. } => Self::unknown(&name),
            other => LinkProblem(other.to_string()),
        })?;
        let Mechanism { name, capabilities, link_options, .. } = mechanism;
        if !capabilities.contains(Capabilities::LINK) {
            let links = Self::names().collect::<Vec<_>>().join(", ");
            let problem = format!("`{name}` cannot stand between two programs; these can: {links}");
            return Err(LinkProblem(problem));
        }
        if let Some(option) = spec.options.keys().find(|option| !link_options.contains(&option.as_str())) {
            let ends = (!capabilities.contains(Capabilities::STORES_DATA)).then_some(&ENDS);
            let known = link_options.iter().chain(ends).copied().collect::<Vec<_>>().join(", ");
            let problem =
                format!("`{option}` of `{name}` is for measuring; between two programs it takes: {known}");
            return Err(LinkProblem(problem));
        }
        if ends.as_ref().is_some_and(|ends| ends.as_deref() != Some("pipe")) {
            return Err(LinkProblem(format!("`{ENDS}` of `{name}` is `{ENDS}=pipe`, or is not given")));
        }
        if ends.is_some() && capabilities.contains(Capabilities::STORES_DATA) {
            return Err(LinkProblem(format!(
                "`{name}` has no `{ENDS}=pipe`: that its writers are done shows in which processes have the file open, and a relay \
                 would be one of them (without order=sequential its reader has a pipe anyway)"
            )));
        }
        let way = LinkWay::Mechanism { mechanism, options, pipe_ends: ends.is_some() };
        Ok(Self { text: text.to_owned(), way })
    }

    /// What is said of a name that is none.
    fn unknown(name: &str) -> LinkProblem {
        let near = nearest(name, Self::names()).map(|near| format!(": did you mean `{near}`?"));
        let links = Self::names().collect::<Vec<_>>().join(", ");
        let end = near.unwrap_or_else(|| ".".to_owned());
        LinkProblem(format!("unknown link `{name}`{end} These are links: {links}, {SSH}HOST"))
    }

    /// The mechanisms that can be links, in the order of the registry.
    pub fn names() -> impl Iterator<Item = &'static str> {
        mechanism::all()
            .iter()
            .filter(|mechanism| mechanism.capabilities.contains(Capabilities::LINK))
            .map(|mechanism| mechanism.name)
    }

    /// When the reading program may start: with the writer, or, through a file, after it.
    pub fn order(&self) -> Order {
        match &self.way {
            LinkWay::Mechanism { options, .. } => Order::from_options(options),
            LinkWay::Ssh(_) => Order::Parallel,
        }
    }

    /// Whether a shell could make it by itself: a pipe, of whatever size.
    pub fn is_pipe(&self) -> bool {
        matches!(self.way, LinkWay::Mechanism { mechanism, .. } if mechanism.name == "pipe")
    }

    /// Whether it goes through another host.
    pub(crate) fn leaves(&self) -> bool {
        matches!(self.way, LinkWay::Ssh(_))
    }

    /// Whether its size was said.
    pub(crate) fn is_sized(&self) -> bool {
        says_size(&self.text)
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
        let (mechanism, options, pipe_ends) = match &self.way {
            LinkWay::Mechanism { mechanism, options, pipe_ends } => (mechanism, options, *pipe_ends),
            LinkWay::Ssh(host) => return Link::through_ssh(self.text.clone(), host),
        };
        if mechanism.capabilities.contains(Capabilities::NEEDS_CLEANUP) {
            // Before the first name is made: a signal that ends this process, SIGKILL too, leaves nothing.
            mechanism::ensure_cleaner().map_err(refused("starting the process that cleans up after us"))?;
        }
        let ends = mechanism.connect(options, folder).unwrap_or_else(|| {
            // The registry's own test holds the two together: what says that it is a link connects.
            Err(OpenError::Unsupported {
                message: format!("`{}` cannot stand between two programs", self.text),
                remedy: "another link".to_owned(),
            })
        })?;
        Link::between(self.text.clone(), ends, pipe_ends && !self.is_pipe())
    }
}

/// Whether a spec says a size.
pub(super) fn says_size(text: &str) -> bool {
    text.parse::<Spec>().is_ok_and(|spec| spec.options.contains_key("size"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_no_size() {
        let said = ["pipe", "pipe:size=64k", "file:dir=/x/size=1"].map(says_size);
        assert_eq!(said, [false, true, false]);
    }

    #[test]
    fn a_spec_prints_as_it_was_typed() {
        for text in [
            "pipe",
            "ssh:me@db2",
            "pipe:size=64k",
            "tcp:nodelay,sndbuf=1MiB",
            "file:sync,order=sequential",
            "pty",
            "socketpair:ends=pipe,sndbuf=1MiB",
        ] {
            assert_eq!(LinkSpec::parse(text).map(|spec| spec.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_host_is_one_word_and_no_option_of_ssh() {
        for wrong in ["ssh:", "ssh:-oProxyCommand=x", "ssh:a b", "ssh:a\nb"] {
            assert!(LinkSpec::parse(wrong).is_err_and(|problem| problem.to_string().contains("ssh:HOST")));
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
        assert!(
            message("pip")
                .starts_with("unknown link `pip`: did you mean `pipe`? These are links: pipe, fifo, ")
        );
        assert!(message("zzzz").starts_with("unknown link `zzzz`. These are links: pipe, fifo, "));
        assert!(
            message("shm-rng").ends_with(", ssh:HOST"),
            "no word of what is no link: {}",
            message("shm-rng")
        );
        assert!(message("pipe:siez=1k").contains("did you mean `size`?"));
        assert!(message("pipe:send=vmsplice").contains("between two programs it takes: size, ends"));
        assert!(message("socketpair:ends=socket").contains("is `ends=pipe`"));
        assert!(message("file:ends=pipe").contains("a relay would be one of them"));
        assert!(message("tmpfile:order=later").contains("parallel, sequential"));
        assert!(message("").contains("names no mechanism"));
    }
}
