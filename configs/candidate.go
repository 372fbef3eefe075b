package configs

import (
	"errors"
	"fmt"

	"github.com/callgate/callgate/configs/document"
)

// CandidateFiles names files of a second configuration, whose judgement is compared with that of
// the one that is served. The files that it does not name are those that are served.
type CandidateFiles struct {
	PolicyFile     string `key:"policy" of:"a policy file"`
	WorkspacesFile string `key:"workspaces" of:"a workspaces file"`
	ApprovalsFile  string `key:"approvals" of:"an approvals file"`
	Registry       struct {
		ToolFiles []string `key:"files" of:"tool files"` // patterns
	} `key:"registry"`
}

// IsSet reports whether there is a candidate.
func (c CandidateFiles) IsSet() bool {
	return c.PolicyFile != "" || c.WorkspacesFile != "" || c.ApprovalsFile != "" || len(c.Registry.ToolFiles) > 0
}

// replace puts the candidate's files in the place of those that are served.
func (c CandidateFiles) replace(s *Settings) {
	for _, file := range []struct {
		name string
		of   *string
	}{{c.PolicyFile, &s.PolicyFile}, {c.WorkspacesFile, &s.WorkspacesFile}, {c.ApprovalsFile, &s.ApprovalsFile}} {
		if file.name != "" {
			*file.of = file.name
		}
	}
	if len(c.Registry.ToolFiles) > 0 {
		s.ToolFiles = c.Registry.ToolFiles
	}
	s.CandidateFiles, s.TestFiles = CandidateFiles{}, nil
}

// loadCandidate loads the candidate of a configuration. Its files are part of the digest, so that
// a change of them is noticed; but whatever is wrong with them is a warning, and never holds
// back what is served.
func (l *loader) loadCandidate(main string, c *Config) {
	if !c.CandidateFiles.IsSet() || len(l.report.Faults) > 0 {
		return
	}
	other := &loader{files: l.files, lockfileDir: l.lockfileDir, before: c.Tools, candidate: &c.CandidateFiles}
	candidate, err := other.load(main, c.DataDir)
	known := map[string]bool{}
	for _, file := range l.contents {
		known[file.name] = true
	}
	for _, file := range other.contents {
		if !known[file.name] {
			l.contents = append(l.contents, file)
		}
	}
	if err == nil {
		rules := c.Rules()
		rules.Beside = candidate.Policy
		if _, _, terms := rules.Terms(); terms != nil {
			err = fmt.Errorf("with those that the policy which is served asks: %w", terms)
		}
	}
	if err == nil {
		c.Candidate = candidate
		return
	}
	c.CandidateFault = err
	var faults document.Faults
	if !errors.As(err, &faults) {
		faults = document.Faults{{File: main, Message: err.Error()}}
	}
	for _, f := range faults {
		warning := *f
		warning.Message = "the candidate does not load, and nothing is compared with it: " + f.Message
		l.report.Warnings = append(l.report.Warnings, &warning)
	}
}
