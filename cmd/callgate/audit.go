package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/approvals"
	"github.com/callgate/callgate/audit/checkpoint"
	"github.com/callgate/callgate/audit/search"

	"github.com/callgate/callgate/internal/cli"
)

func newAudit(e env) *cobra.Command {
	return group("audit", "Work on the audit log", newAuditQuery(e), newAuditShow(e), newAuditVerify(e), newAuditKey(e),
		newAuditAcceptLoss(e))
}

func newAuditVerify(e env) *cobra.Command {
	var keys []string
	var heads fileFlag
	var check audit.Verifier
	var config string
	var withApprovals bool
	c := &cobra.Command{
		Use:   "verify [FILE…]",
		Short: "Check the chain of an audit log",
		Long: `Check that every record is as written and follows the one before it, in the files given,
oldest first, or in the log of data_dir. The first flipped, deleted, inserted or exchanged
record is named. Each folder holds the chain of one gateway.

A chain cannot show that its end is missing, or was rewritten from some record on.
--public-key also checks the signed heads (audit.sign_key) beside the files, or the copy that
--heads names: all that they sign must be there, unchanged.

--approvals checks that no call used an approval without enough votes before it, after a no,
late, twice, or by its own caller's vote, and no grant late or for another caller or tool.
Give it the logs of all gateways that took votes.

Exit code 1: a chain is broken, or an approval did not allow its call. 2: unreadable file.`,
		Example: `  callgate audit verify
  callgate audit verify --public-key audit.pub gate-*/audit*.jsonl`,
		RunE: func(c *cobra.Command, files []string) error {
			if len(files) == 0 {
				var err error
				if files, err = ownLog(e, config); err != nil {
					return err
				}
			}
			for _, name := range keys {
				key, err := checkpoint.ReadPublicKey(name)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				check.Keys = append(check.Keys, key)
			}
			check.CheckpointFile = string(heads)
			chains, err := check.Verify(files...)
			if err != nil {
				return fmt.Errorf("cannot verify: %w", err)
			}
			intact := audit.WriteReport(e.Stdout, chains)
			if withApprovals && intact {
				if intact, err = verifyApprovals(c.Context(), e, files); err != nil {
					return err
				}
			}
			if !intact {
				return cli.ErrRefused
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&keys, "public-key", nil, "check signed heads with the key in `FILE` (repeatable)")
	c.Flags().Var(&heads, "heads", "read the heads from `FILE`")
	c.Flags().BoolVar(&withApprovals, "approvals", false, "also check the approvals and grants that were used")
	configFlag(c, &config)
	c.Flags().BoolVar(&check.Partial, "partial", false, "allow missing oldest files, up to a record that a head signs")
	return c
}

// ownLog is the audit log in data_dir of a configuration, its oldest file first.
func ownLog(e env, config string) ([]string, error) {
	loaded, err := e.Load(config)
	if err != nil {
		return nil, err
	}
	current := filepath.Join(loaded.DataDir, "audit.jsonl")
	files, err := fs.Glob(os.DirFS(loaded.DataDir), "audit-*.jsonl") // sorted, as their numbers are
	if err != nil {
		return nil, fmt.Errorf("cannot verify: %w", err)
	}
	for i := range files {
		files[i] = filepath.Join(loaded.DataDir, files[i])
	}
	if _, err := os.Stat(current); err == nil || len(files) == 0 {
		files = append(files, current)
	}
	if !loaded.SignKey.IsSet() {
		fmt.Fprintln(e.Stderr, "note: records that are missing at the end are not found, since audit.sign_key signs no heads")
	}
	return files, nil
}

// verifyApprovals checks the use of approvals in logs whose chains hold, and reports whether all
// were used as they allow.
func verifyApprovals(ctx context.Context, e env, files []string) (bool, error) {
	logs, err := search.Open(files...)
	if err != nil {
		return false, fmt.Errorf("cannot verify: %w", err)
	}
	r, err := approvals.Check(ctx, logs)
	if err := errors.Join(err, logs.Close()); err != nil {
		return false, fmt.Errorf("cannot verify: %w", err)
	}
	for _, f := range r.Findings {
		fmt.Fprintln(e.Stdout, f)
	}
	if len(r.Findings) > 0 {
		return false, nil
	}
	fmt.Fprintf(e.Stdout, "approvals hold; decisions that use one: %d\n", r.Decisions)
	return true, nil
}

func newAuditKey(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "key FILE",
		Short: "Make a key that heads of audit logs are signed with",
		Long: `Make an Ed25519 key that signs heads of audit logs. The private key (PKCS #8, PEM) goes to a
new FILE that only its owner can read: set audit.sign_key: file:FILE. The public key, for
"audit verify", goes to standard output: keep it elsewhere.`,
		Example: "  [ -e audit.key ] || callgate audit key audit.key > audit.pub",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			private, public, err := checkpoint.NewKey()
			if err != nil {
				return cli.InternalError{Err: err}
			}
			if err := checkpoint.CreateKeyFile(args[0], private); err != nil {
				return fmt.Errorf("cannot write the key: %w", err)
			}
			_, err = e.Stdout.Write(public)
			return err
		},
	}
}
