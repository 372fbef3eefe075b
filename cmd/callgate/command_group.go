package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// wrongLetters is how many letters of a mistyped command may be wrong, so that a name is offered.
const wrongLetters = 2

// knownCommand refuses words behind a group of commands, with the command that may have been meant.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], c.CommandPath(), hint)
}

// needsCommand answers a command that holds others and stands alone: with its help, and as a mistake.
// A hook whose entry is cut short must not end as if it had judged.
func needsCommand(c *cobra.Command, _ []string) error {
	c.SetOut(c.ErrOrStderr())
	return errors.Join(c.Help(), fmt.Errorf("found no command after %q", c.CommandPath()))
}

// group is a command that holds others and does nothing itself.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: knownCommand, SuggestionsMinimumDistance: wrongLetters, RunE: needsCommand}
	c.AddCommand(commands...)
	return c
}

// arguments checks how many arguments a command has. A mistake names what its usage names, with its first example.
func arguments(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		example, _, _ := strings.Cut(strings.TrimSpace(c.Example), "\n")
		switch {
		case len(args) < least:
			return fmt.Errorf("%s is missing, as in: %s", strings.Fields(c.Use)[len(args)+1], example)
		case len(args) > most:
			return fmt.Errorf("found %d arguments; expected %d, as in: %s", len(args), most, example)
		}
		return nil
	}
}
