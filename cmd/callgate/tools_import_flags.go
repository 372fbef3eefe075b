package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolimport"
)

// importFlags are the flags that all imports of definitions have.
type importFlags struct {
	only  []string
	notes notesFlag
}

// add adds the flags to a command.
func (o *importFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&o.only, "only", nil, "only tools whose names match this `PATTERN`, such as web.* (repeatable)")
	c.Flags().Var(&o.notes, "notes", "print changes and omissions this `WAY`: grouped or all")
	c.Flags().BoolVarP(&o.notes.all, "verbose", "v", false, "the same as --notes all")
	// Flags that were just added can be completed.
	_ = c.RegisterFlagCompletionFunc("notes", cobra.FixedCompletions([]string{"grouped", "all"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("only", cobra.NoFileCompletions)
}

// notesFlag is how notes are printed.
type notesFlag struct{ all bool }

func (f *notesFlag) String() string {
	if f.all {
		return "all"
	}
	return "grouped"
}

func (f *notesFlag) Type() string { return "string" }

func (f *notesFlag) Set(s string) error {
	if s != "all" && s != "grouped" {
		return fmt.Errorf("found %q; expected grouped or all", s)
	}
	f.all = s == "all"
	return nil
}

// shownNotes is how many notes of one kind are printed in full.
const shownNotes = 3

// printNotes prints what was changed, or left out: all of it, or of each kind the first few and a count.
func printNotes(e env, what string, notes []*document.Fault, all bool) {
	if all {
		for _, n := range notes {
			fmt.Fprintf(e.Stderr, "%s: %v\n", what, n)
		}
		return
	}
	grouped := false
	for _, g := range toolimport.GroupNotes(notes) {
		for _, n := range g.Notes[:min(len(g.Notes), shownNotes)] {
			fmt.Fprintf(e.Stderr, "%s: %v\n", what, n)
		}
		if more := len(g.Notes) - shownNotes; more > 0 {
			fmt.Fprintf(e.Stderr, "%s: %d more of this kind, %d in all: %s\n", what, more, len(g.Notes), g.Kind)
			grouped = true
		}
	}
	if grouped {
		fmt.Fprintf(e.Stderr, "%s: --notes all prints each\n", what)
	}
}

// completeChoices completes the values of filters from the document that the command line names. Nothing is
// fetched for that.
func completeChoices(e env, c *cobra.Command) {
	for flag, choices := range map[string]func(toolimport.Choices) []string{
		"operation": func(c toolimport.Choices) []string { return c.Operations },
		"tag":       func(c toolimport.Choices) []string { return c.Tags },
		"path":      func(c toolimport.Choices) []string { return c.Paths },
	} {
		// A flag that was just added can be completed.
		_ = c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			if info, err := os.Stat(args[0]); err != nil || !info.Mode().IsRegular() {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			name, data, err := e.Definitions(c.Context(), args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var fitting []string
			for _, choice := range choices(toolimport.OpenAPIChoices(name, data)) {
				if strings.HasPrefix(choice, begun) && !strings.ContainsAny(choice, "\n\t") {
					fitting = append(fitting, choice)
				}
			}
			return fitting, cobra.ShellCompDirectiveNoFileComp
		})
	}
}
