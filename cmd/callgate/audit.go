package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/audit"
)

func newAudit(e env) *cobra.Command {
	parent := &cobra.Command{
		Use:   "audit",
		Short: "Work on the audit log",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	parent.AddCommand(&cobra.Command{
		Use:   "verify FILE…",
		Short: "Check the chain of an audit log",
		Long: `Check that every record is what was written and follows the one before it, over
one file or several, oldest first. Flipped, deleted, inserted and exchanged
records are found, and the first is named. What a chain alone cannot show is
that records at its very end are missing.

The exit code is 0 when the chain holds, 1 when it is broken, 2 when a file
cannot be read.`,
		Example: "  callgate audit verify callgate-data/audit*.jsonl",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			report, err := audit.Verify(files...)
			var broken *audit.Broken
			if errors.As(err, &broken) {
				fmt.Fprintf(e.stdout, "broken: %v\n%d records before it hold\n", broken, report.Records)
				return status(exitRefused)
			}
			if err != nil {
				return fmt.Errorf("cannot verify: %w", err)
			}
			fmt.Fprintf(e.stdout, "the chain holds: %d records, seq %d to %d, last hash %s\n", report.Records, report.FirstSeq, report.LastSeq, report.LastHash)
			if report.TornBytes > 0 {
				fmt.Fprintf(e.stdout, "%d bytes of an incomplete line follow: a write that was cut short or is under way\n", report.TornBytes)
			}
			return nil
		},
	})
	return parent
}
