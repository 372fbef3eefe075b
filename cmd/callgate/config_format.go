package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/wholefile"
)

func newConfigFormat(e env) *cobra.Command {
	var file string
	var check, showDiff bool
	c := &cobra.Command{
		Use:   "fmt [FILE...]",
		Short: "Write configuration files in their usual layout",
		Long: `Write configuration files, by default all YAML files and the policy, in their usual layout:
indented by two spaces, at most one empty line in a row, one space before a comment, policy
rows in columns. Comments, quotes, "# end" and all values stay; a file that would change
otherwise is left, with exit code 2. A file is replaced whole.`,
		Example: `  callgate config fmt --check
  callgate config fmt --diff policy.csv`,
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := filesOf(e, args, file)
			if err != nil {
				return err
			}
			return formatFiles(e, files, check, showDiff)
		},
		ValidArgsFunction: completeConfigFiles,
	}
	configFlag(c, &file)
	c.Flags().BoolVar(&check, "check", false, "only list the files that differ; exit code 1 if any")
	c.Flags().BoolVar(&showDiff, "diff", false, "only show the differences")
	return c
}

// completeConfigFiles completes the names of configuration files.
func completeConfigFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "csv", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// filesOf are the files of the arguments, or without one those of the configuration.
func filesOf(e env, args []string, flag string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	c, err := e.LoadUntested(flag)
	if err != nil {
		return nil, err
	}
	if c.Embedded() {
		return nil, errors.New("found no configuration but the built-in one, which is no file; expected FILE or --config FILE")
	}
	return c.OwnFiles(), nil
}

// addFaults adds the faults of a file, or the error of it.
func addFaults(to *document.Report, file string, err error) {
	var several document.Faults
	if !errors.As(err, &several) {
		to.AddError(file, err)
	}
	for _, f := range several {
		to.Add(f)
	}
}

// formatFiles formats files. Each is tried: what is wrong with one holds back no other.
func formatFiles(e env, files []string, check, showDiff bool) error {
	faults := document.Report{Unlimited: true}
	differ := false
	for _, name := range files {
		before, after, err := rewritten(name, configs.Format)
		if err != nil {
			addFaults(&faults, name, err)
			continue
		}
		if bytes.Equal(before, after) {
			continue
		}
		differ = true
		switch {
		case showDiff:
			_, err = e.Stdout.Write(diff.Diff(name, before, name+" (formatted)", after))
		case check:
			_, err = fmt.Fprintln(e.Stdout, name)
		default:
			if err = replaceFile(name, after); err == nil {
				_, err = fmt.Fprintf(e.Stdout, "%s: formatted\n", name)
			}
		}
		if err != nil {
			addFaults(&faults, name, err)
		}
	}
	if err := faults.Err(); err != nil {
		return err
	}
	if differ && check {
		return cli.ErrRefused
	}
	return nil
}

func newConfigSeal(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "seal FILE...",
		Short: "Add the line \"# end\" to files that lack it",
		Long: `Add the line "# end" to configuration files that lack it, and report each. Every file ends
with it, so that one saved halfway is never read; templates and some formatters drop it.
Seal a file only after its writer has finished: this command cannot know what is missing.
Exit code 2: a file is not well-formed, or has more behind the line. A file is replaced whole.`,
		Example: `  envsubst < callgate.tmpl.yaml > callgate.yaml && callgate config seal callgate.yaml`,
		Args:    arguments(1, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) error {
			faults := document.Report{Unlimited: true}
			for _, name := range args {
				if err := sealFile(e, name); err != nil {
					addFaults(&faults, name, err)
				}
			}
			return faults.Err()
		},
		ValidArgsFunction: completeConfigFiles,
	}
}

// sealFile seals one file, and says whether it had to.
func sealFile(e env, name string) error {
	before, after, err := rewritten(name, configs.Seal)
	if err != nil {
		return err
	}
	done := "has its last line"
	if !bytes.Equal(before, after) {
		if err := replaceFile(name, after); err != nil {
			return err
		}
		done = "sealed"
	}
	_, err = fmt.Fprintf(e.Stdout, "%s: %s\n", name, done)
	return err
}

// rewritten reads a file, and returns it as it is and as change makes it.
func rewritten(name string, change func(file string, data []byte) ([]byte, error)) (before, after []byte, err error) {
	before, err = document.ReadFile(name)
	if err != nil {
		return nil, nil, &document.Fault{File: name, Message: err.Error()}
	}
	after, err = change(name, before)
	return before, after, err
}

// replaceFile replaces a file, or what a link leads to, whole and with the mode that it has.
func replaceFile(name string, data []byte) error {
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return wholefile.ReplaceAs(target, data, info.Mode().Perm())
}
