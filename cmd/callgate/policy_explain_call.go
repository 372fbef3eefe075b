package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/search"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// explainJSON prints what the admin API answers, with what conditions have read of the past.
func explainJSON(ctx context.Context, e env, c *configs.Config, r policy.Request, withArguments bool, saw func() []string) error {
	explained, err := admin.Explain(ctx, c.Policy, r, withArguments)
	if err != nil {
		return cli.InternalError{Err: err}
	}
	explained.Saw = saw()
	if err := json.NewEncoder(e.Stdout).Encode(explained); err != nil {
		return err
	}
	if !explained.Allowed {
		return cli.ErrRefused
	}
	return nil
}

// recordedRequest is the request of a call of the audit log, whether it has arguments, and what its conditions saw.
func recordedRequest(ctx context.Context, e env, c *configs.Config, logs []string, id string) (policy.Request, bool, []string, error) {
	found, saw, err := decisionOf(ctx, e, c, logs, id)
	if err != nil {
		return policy.Request{}, false, nil, err
	}
	if found.Tool == "" {
		return policy.Request{}, false, nil, fmt.Errorf("the policy was not asked about %s: its record has no tool", audit.Escaped(id))
	}
	r := policy.Request{Agent: found.Agent, Workspace: found.Workspace, Project: found.Project, Tool: found.Tool}
	if found.ConfigDigest != c.Digest {
		fmt.Fprintf(e.Stderr, "note: the call was judged by another configuration, %.12s; this one is %.12s\n",
			audit.Escaped(found.ConfigDigest), c.Digest)
	}
	if found.Verdict == audit.Refused && slices.Index(refusal.Stages(), found.Stage) < slices.Index(refusal.Stages(), refusal.Permission) {
		fmt.Fprintf(e.Stderr, "note: the policy was not asked: the call was refused at %s, as %s; this is what the policy says of it now\n", found.Stage, found.Code)
		if len(found.Arguments) > 0 {
			if r.Arguments, err = violations.ReadArguments(nil, found.Arguments, c.Output.MaxDepth); err == nil {
				return r, true, saw, nil
			}
		}
	}
	var missing string
	if r.Arguments, missing = recordedArguments(c, &found); missing != "" {
		fmt.Fprintf(e.Stderr, "note: the arguments of the call are not known (%s), so conditions that read one fail\n", missing)
	}
	return r, missing == "", saw, nil
}

// decisionOf finds the decision on a call in the logs, or else in that of the configuration, and what its conditions saw:
// labels with the calls that have added them.
func decisionOf(ctx context.Context, e env, c *configs.Config, logs []string, id string) (r audit.Record, saw []string, err error) {
	if len(logs) == 0 {
		if logs, err = logFolders(c.DataDir); err != nil {
			return r, nil, err
		}
	}
	opened, err := search.Open(logs...)
	if err != nil {
		return r, nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	s := newLogSearch(e)
	defer s.Progress.Done()
	for f, err := range opened.Records(ctx, search.Query{Call: id}, search.Options{OnRead: s.Read}) {
		switch {
		case err != nil:
			if err := s.Failed(err); err != nil {
				return r, nil, err
			}
		case f.Record.Event == audit.Decision:
			saw, err := withLabelsSince(ctx, opened, s, &f.Record)
			return f.Record, saw, err
		}
	}
	return r, nil, fmt.Errorf(
		"no record is of the call %s; each gateway has a log of its own (--log), and old files may have been moved away", audit.Escaped(id))
}

// withLabelsSince are what the conditions of a call saw, labels with the first call of their thread that the logs have to
// have added each.
func withLabelsSince(ctx context.Context, logs *search.Logs, s *logSearch, r *audit.Record) ([]string, error) {
	saw := slices.Clone(r.Saw)
	i := slices.IndexFunc(saw, func(value string) bool { return strings.HasPrefix(value, "thread.labels=") })
	if i < 0 {
		return saw, nil
	}
	var made []string
	left := strings.Split(strings.TrimPrefix(saw[i], "thread.labels="), ",")
	for f, err := range logs.Records(ctx, search.Query{}, search.Options{OnRead: s.Read}) {
		switch {
		case err != nil:
			if err := s.Failed(err); err != nil {
				return nil, err
			}
			continue
		case f.Record.Event == audit.Decision && f.Record.CallID == r.CallID || len(left) == 0:
			saw[i] = with(saw[i], made)
			return saw, nil
		case f.Record.Ledger != r.Ledger:
			continue
		}
		left = slices.DeleteFunc(left, func(label string) bool {
			added := slices.Contains(f.Record.Adds, "label:"+label)
			if added {
				made = append(made, fmt.Sprintf("%s since %s (%s)", label, audit.Escaped(f.Record.CallID), audit.Escaped(f.Record.Tool)))
			}
			return added
		})
	}
	saw[i] = with(saw[i], made)
	return saw, nil
}
