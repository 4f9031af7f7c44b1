"""`cas completion`: what a shell needs to complete command lines."""

from __future__ import annotations

import sys

import click

from cas.errors import EXIT_DONE

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Write what lets a shell complete commands.")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> int:
    """Write the script that lets a shell complete commands, options, the plan's tiers, sets and
    sources, and paths of tiers that are held.

    bash needs no other package for it; it must be 4.4 or newer.

    \b
    Examples:
      cas completion bash >> ~/.bashrc
      source <(cas completion zsh)            # in ~/.zshrc, after compinit
      cas completion fish > ~/.config/fish/completions/cas.fish
    """
    from cli.completing_scripts import SCRIPTS

    sys.stdout.write(SCRIPTS[shell])
    return EXIT_DONE
