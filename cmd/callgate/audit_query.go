package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/audit/search"
)

func newAuditQuery(e env) *cobra.Command {
	var from logFlags
	var q search.Query
	var verdict, project, since, until string
	var asJSON, summary bool
	var limit int
	c := &cobra.Command{
		Use:   "query",
		Short: "Find records in audit logs",
		Long: `Print the records that match all flags, oldest first. End a value with * to match a prefix.
Times are RFC 3339, or an age: 90m, 1h, 2d. Several logs are merged by time. Works while a
gateway writes.

A line that may match and was altered is left out and named on standard error; then the exit
code is 1. Whether the chain holds, "audit verify" says.`,
		Example: `  callgate audit query --agent Intern --verdict refused --since 1h
  callgate audit query --log gate-0 --log gate-1 --tool 'payments.*' --json | jq .call_id`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := readQuery(&q, verdict, project, since, until); err != nil {
				return err
			}
			if limit < 0 {
				return fmt.Errorf("--limit is %d; expected 0 or more", limit)
			}
			if asJSON && !c.Flags().Changed("limit") {
				limit = 0
			}
			logs, _, err := from.Open(e)
			if err != nil {
				return err
			}
			if summary {
				return errors.Join(printSummary(c.Context(), e, logs, q), logs.Close())
			}
			return errors.Join(printRecords(c.Context(), e, logs, q, limit, asJSON), logs.Close())
		},
	}
	from.Add(c)
	f := c.Flags()
	f.StringVar(&q.Agent, "agent", "", "of this `AGENT`")
	f.StringVar(&q.Principal, "principal", "", "of this `PRINCIPAL`")
	f.StringVar(&q.Tool, "tool", "", "of this `TOOL`")
	f.StringVar(&q.Code, "code", "", "with this `CODE` of a refusal or approval event")
	f.StringVar(&verdict, "verdict", "", "with this `VERDICT`: tool_call, text or refused")
	f.StringVar(&project, "project", "", "of this `PROJECT` or WORKSPACE/PROJECT")
	f.StringVar(&q.Call, "call", "", "of the call with this `ID`")
	f.StringVar(&since, "since", "", "of this `TIME` and later")
	f.StringVar(&until, "until", "", "before this `TIME`")
	f.BoolVar(&asJSON, "json", false, "print the lines of the log")
	f.BoolVar(&summary, "summary", false, "count decisions by agent, tool and code")
	f.IntVar(&limit, "limit", defaultLimit, "print the newest `N`; 0 is all (default with --json)")
	c.MarkFlagsMutuallyExclusive("summary", "json")
	c.MarkFlagsMutuallyExclusive("summary", "limit")
	return c
}

// printSummary counts what is found.
func printSummary(ctx context.Context, e env, logs *search.Logs, q search.Query) error {
	s := newLogSearch(e)
	counts := search.Summary{}
	for found, err := range logs.Records(ctx, q, search.Options{OnRead: s.Read}) {
		if err == nil {
			counts.Add(&found.Record)
		} else if err := s.Failed(err); err != nil {
			return err
		}
	}
	err := s.End()
	if len(counts) == 0 {
		fmt.Fprintln(e.Stderr, "no record matches")
		return err
	}
	counts.Write(e.Stdout)
	return err
}

// printRecords prints what is found, oldest first: with a limit the newest, else as it is found.
func printRecords(ctx context.Context, e env, logs *search.Logs, q search.Query, limit int, asJSON bool) error {
	s := newLogSearch(e)
	out := bufio.NewWriterSize(e.Stdout, 64<<10)
	printed := 0
	show := func(f search.Found) {
		if printed++; printed == 1 && !asJSON {
			search.WriteHead(out)
		}
		if asJSON {
			_, _ = out.Write(append(f.Line, '\n')) // the writer remembers an error
		} else {
			search.WriteLine(out, &f.Record)
		}
	}
	var newest []search.Found
	more := false
	for found, err := range logs.Records(ctx, q, search.Options{NewestFirst: limit > 0, OnRead: s.Read}) {
		if err != nil {
			if err := s.Failed(err); err != nil {
				return errors.Join(out.Flush(), err)
			}
			continue
		}
		if limit == 0 {
			show(found)
			continue
		}
		if more = len(newest) == limit; more {
			break
		}
		newest = append(newest, found)
	}
	for _, found := range slices.Backward(newest) {
		show(found)
	}
	newestOnly := fmt.Sprintf("these are the newest %d; there are more: --limit 0 prints all\n", limit)
	if more && !asJSON {
		_, _ = out.WriteString(newestOnly) // at the end of the table, where it is read
	}
	if err := out.Flush(); err != nil {
		return err
	}
	err := s.End()
	switch {
	case printed == 0 && err == nil:
		fmt.Fprintln(e.Stderr, "no record matches")
	case more && asJSON:
		fmt.Fprint(e.Stderr, newestOnly)
	}
	return err
}
