package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/search"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/terminal"
	"github.com/callgate/callgate/refusal"
)

// logFlags name the logs that a command searches.
type logFlags struct {
	Config string
	Logs   []string
}

// Add adds the flags to a command.
func (l *logFlags) Add(c *cobra.Command) {
	c.Flags().StringArrayVar(&l.Logs, "log", nil, "the log in this `FILE|FOLDER` (repeatable; default: data_dir)")
	configFlag(c, &l.Config)
}

// Open opens the logs. The configuration is nil where the flags do not need one.
func (l *logFlags) Open(e env) (*search.Logs, *configs.Config, error) {
	var config *configs.Config
	if len(l.Logs) == 0 || l.Config != "" {
		var err error
		if config, err = e.Load(l.Config); err != nil {
			return nil, nil, err
		}
	}
	places := l.Logs
	if len(places) == 0 {
		var err error
		if places, err = logFolders(config.DataDir); err != nil {
			return nil, nil, err
		}
	}
	logs, err := search.Open(places...)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	return logs, config, nil
}

// logFolders are the folders below a data_dir that have a log: its own, of callgate serve, and those of the
// processes that serve one client each. Where there is none, it is data_dir, which is there.
func logFolders(dataDir string) (folders []string, err error) {
	for _, place := range []string{"", "acp/*", "mcp/*"} {
		files, _ := filepath.Glob(filepath.Join(dataDir, place, "audit*.jsonl")) // the pattern is well formed
		for _, file := range files {
			if dir := filepath.Dir(file); !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
	}
	if len(folders) == 0 {
		if _, err := os.Stat(dataDir); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("nothing was recorded yet: the folder %s of data_dir is not there", dataDir)
		}
		return []string{dataDir}, nil
	}
	return folders, nil
}

// logSearch shows how much was read, and counts faults.
type logSearch struct {
	stderr   io.Writer
	Progress *terminal.Progress
	faults   int
	rest     int64
}

// NewSearch begins a search, whose progress and faults are shown on standard error.
func newLogSearch(e env) *logSearch {
	return &logSearch{stderr: e.Stderr, Progress: terminal.NewProgress(e.Stderr, "MB of the audit log read")}
}

// Read adds bytes that were read.
func (s *logSearch) Read(n int64) {
	s.rest += n
	s.Progress.Add(int(s.rest >> 20))
	s.rest &= 1<<20 - 1
}

// Failed says a fault of a line, and returns any other error.
func (s *logSearch) Failed(err error) error {
	var fault *audit.CorruptionError
	if !errors.As(err, &fault) {
		return fmt.Errorf("cannot read the audit log: %w", err)
	}
	s.faults++
	fmt.Fprintf(s.stderr, "%v\n", err)
	return nil
}

// End returns the error that faults are.
func (s *logSearch) End() error {
	s.Progress.Done()
	if s.faults == 0 {
		return nil
	}
	fmt.Fprintf(s.stderr, "%d lines are not as they were written, and are left out\n", s.faults)
	return cli.ErrRefused
}

// defaultLimit is how many records are printed for people.
const defaultLimit = 100

// readQuery adds the flags that are not taken as they are.
func readQuery(q *search.Query, verdict, project, since, until string) error {
	q.Verdict = audit.Verdict(verdict)
	if !slices.Contains([]audit.Verdict{"", audit.ToolCall, audit.Text, audit.Refused}, q.Verdict) {
		return fmt.Errorf("--verdict is %q; expected %s, %s or %s", verdict, audit.ToolCall, audit.Text, audit.Refused)
	}
	q.Project = project
	if workspace, name, both := strings.Cut(project, "/"); both {
		q.Workspace, q.Project = workspace, name
	}
	now := time.Now()
	for _, bound := range []struct {
		flag, text string
		at         *time.Time
	}{{"since", since, &q.Since}, {"until", until, &q.Until}} {
		if bound.text == "" {
			continue
		}
		at, err := search.ParseTime(bound.text, now)
		if err != nil {
			return fmt.Errorf("--%s: %w", bound.flag, err)
		}
		*bound.at = at
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return errors.New("--since is not before --until, so nothing could match")
	}
	return nil
}

// recordedArguments are those of a record, or why the policy cannot be asked about them.
func recordedArguments(c *configs.Config, r *audit.Record) (arguments map[string]any, missing string) {
	if len(r.Arguments) == 0 {
		if audit.Content(c.Record) == audit.Digest || c.Record == "" {
			return nil, "audit.record is digest; with arguments the log has them for the calls to come"
		}
		return nil, "the log does not have them"
	}
	entry, _ := c.Tools.Lookup(r.Tool)
	arguments, err := violations.ReadArguments(entry, r.Arguments, c.Output.MaxDepth)
	var refused *refusal.Error
	switch {
	case errors.As(err, &refused):
		return nil, "today's schema refuses them as they are recorded, without secrets"
	case err != nil:
		return nil, "they cannot be read"
	}
	return arguments, ""
}
