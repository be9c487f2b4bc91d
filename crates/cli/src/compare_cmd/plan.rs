//! What `hosepipe compare` runs: each pipeline, with each combination of its parameters, over each link.

use model::Spec;
use pipeline::TrialOptions;
use pipeline::contest::{Contender, SHELL};
use pipeline::shell::Shell;

use super::CompareArgs;
use super::parameters::{self, Values, combined, filled, name_in_records};
use crate::terminal::{self, UsageError, usage};
use crate::{copies, script};

/// The default links of one pipeline.
const LINKS: &str = "pipe,tmpfile,file,socketpair,shell";
/// The same for --by latency, which the shell's own pipes cannot measure.
const LINKS_WITH_LATENCY: &str = "pipe,tmpfile,file,socketpair";

/// The pipelines and links that take turns.
pub(super) struct Plan<'a> {
    /// Each text with each combination of its parameters.
    pub(super) pipelines: Vec<(&'a str, Values)>,
    pub(super) contenders: Vec<Contender>,
    /// Whether there are several pipelines, or several variants of one.
    pub(super) several: bool,
    has_several_links: bool,
}

impl<'a> Plan<'a> {
    pub(super) fn new(args: &'a CompareArgs, shell: &Shell) -> anyhow::Result<Self> {
        check_names(args)?;
        let commands = [&args.set_up, &args.prepare, &args.conclude, &args.clean_up];
        let commands: Vec<&str> = commands.into_iter().flatten().map(String::as_str).collect();
        let pipelines = combined(&args.texts, &commands, &parameters::read(&args.parameters)?)?;
        let texts: Vec<String> = pipelines.iter().map(|(text, values)| filled(text, values)).collect();
        texts.iter().try_for_each(|text| script::check_syntax(text, shell))?;
        let aligns = args.align_buffers && copies::alignment_has_effect();
        let several = texts.len() > 1 || args.without.is_some() || aligns;
        let has_links = texts.iter().any(|text| text.replace("||", "").contains('|'));
        if !has_links && !several && args.via.is_none() {
            terminal::remark("There is no `|` that a link could replace: the shell alone is timed.");
        }
        let vias = vias(args, several || !has_links, shell)?;
        let contenders = contenders(args, aligns, &pipelines, &vias, shell)?;
        Ok(Self { pipelines, contenders, several, has_several_links: vias.len() > 1 })
    }

    /// Whether other output in a later run is a failure: that of one of several pipelines may change from run to run, that of one pipeline
    /// over several links may not.
    pub(super) fn must_be_equal(&self) -> bool {
        !self.several || self.has_several_links
    }
}

/// Refuses names that are not different, or more names than command lines.
fn check_names(args: &CompareArgs) -> anyhow::Result<()> {
    let names = &args.names;
    if names.len() > args.texts.len() {
        return usage(format!("-n names {}, and there are {} command lines", names.len(), args.texts.len()));
    }
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, twice)) => {
            usage(format!("`-n {twice}` is given twice: give each command line a name of its own"))
        }
        None => Ok(()),
    }
}

/// The links as typed, or by default.
fn vias(args: &CompareArgs, is_shell_usual: bool, shell: &Shell) -> anyhow::Result<Vec<String>> {
    let by_latency = args.by == "latency";
    let default = match (by_latency, is_shell_usual) {
        (true, true) => "pipe",
        (true, false) => LINKS_WITH_LATENCY,
        (false, true) => SHELL,
        (false, false) => LINKS,
    };
    let vias = links(args.via.as_deref().unwrap_or(default));
    vias.iter().filter(|via| via.contains([' ', ';'])).try_for_each(|via| script::link(via).map(drop))?;
    let has_no_latency = |via: &&String| {
        *via == SHELL || *via == shell.kind.word() || Spec::has_option(via, "order", "sequential")
    };
    match vias.iter().find(has_no_latency).filter(|_| by_latency) {
        Some(via) => usage(format!(
            "--by latency: the time of lines cannot be measured over `{via}`: choose another link, as in --via pipe"
        )),
        None => Ok(vias),
    }
}

/// How a pipeline is run: as it is, without the refused calls, or with aligned buffers.
struct Variant {
    /// The name and the value by which records show it; `None` for a pipeline as it is.
    option: Option<(&'static str, String)>,
    options: TrialOptions,
}

/// Each variant of each pipeline, over each link.
fn contenders(
    args: &CompareArgs,
    aligns: bool,
    pipelines: &[(&str, Values)],
    vias: &[String],
    shell: &Shell,
) -> anyhow::Result<Vec<Contender>> {
    let plain = TrialOptions { latency: args.by == "latency", ..TrialOptions::default() };
    let mut variants = vec![Variant { option: None, options: plain.clone() }];
    variants.extend(args.without.iter().map(|calls| Variant {
        option: Some(("without", calls.to_string())),
        options: TrialOptions { without: Some(calls.clone()), ..plain.clone() },
    }));
    variants.extend(aligns.then(|| Variant {
        option: Some(("align-buffers", "yes".to_owned())),
        options: TrialOptions { align_buffers: true, ..plain },
    }));
    let mut all = Vec::new();
    for (text, values) in pipelines {
        let place = args.texts.iter().position(|typed| std::ptr::eq(typed.as_str(), *text));
        let own_name = place.and_then(|place| args.names.get(place));
        for Variant { option, options } in &variants {
            let comment =
                option.as_ref().map(|(name, value)| format!(" # {name}={value}")).unwrap_or_default();
            let shown = name_in_records(text, values) + &comment;
            let name = own_name.map(|name| name_in_records(name, values) + &comment);
            let of_option = option.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            let parameters: Values = values.clone().into_iter().chain(of_option).collect();
            for via in vias {
                let mut contender =
                    Contender::new(&filled(text, values), &shown, via, shell).map_err(UsageError::new)?;
                contender.prepare = args.prepare.as_ref().map(|text| filled(text, values));
                contender.conclude = args.conclude.as_ref().map(|text| filled(text, values));
                contender.options = TrialOptions { via: contender.options.via, ..options.clone() };
                contender.result.parameters = parameters.clone();
                contender.result.name = name.clone();
                all.push(contender);
            }
        }
    }
    Ok(all)
}

/// Splits `pipe,file:sync,order=sequential,tcp` into links: a piece that is an option belongs to the link before it, if that one has
/// options.
fn links(text: &str) -> Vec<String> {
    let mut links: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let option = piece.contains('=') && !piece.contains(':');
        match links.last_mut() {
            Some(last) if option && last.contains(':') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => links.push(piece.to_owned()),
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn options_stay_with_their_link() {
        assert_eq!(links("pipe,tmpfile"), ["pipe", "tmpfile"]);
        assert_eq!(links("file:sync,order=sequential,tcp"), ["file:sync,order=sequential", "tcp"]);
        assert_eq!(links("pipe,size=1MiB"), ["pipe", "size=1MiB"], "no option without a colon");
    }
}
