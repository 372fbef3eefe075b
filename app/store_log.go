package app

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/redisstore"
)

// factsBatch is how many records of the log a store on Redis takes at once.
const factsBatch = 512

// logOfStore is the audit log for a store on Redis, which puts back from it what Redis has lost. Where callers are
// anonymous, the log names their addresses as principals, and the store has none.
func logOfStore(log *audit.Log, anonymous bool, dir string, bounds store.ThreadBounds, logger *slog.Logger) redisstore.Log {
	return redisstore.Log{
		Mark: func() uint64 {
			seq, _ := log.Last()
			return seq
		},
		Read: func(ctx context.Context, behind uint64, since time.Time, do func([]store.Fact) error) (complete bool, err error) {
			from := behind + 1
			if behind == 0 {
				from = 0 // from a time on
			}
			var facts []store.Fact
			flush := func() error {
				if len(facts) == 0 {
					return nil
				}
				err := do(facts)
				facts = facts[:0]
				return err
			}
			reach, err := log.Replay(ctx, from, since, func(r *audit.Record) error {
				if f, ok := factOf(r); ok {
					if anonymous {
						f.Call.Scope.Principal = ""
					}
					facts = append(facts, f)
				}
				if len(facts) < factsBatch {
					return nil
				}
				return flush()
			})
			if err == nil {
				err = flush()
			}
			return reach.Missing == 0, err
		},
		Threads: func(ctx context.Context, behind uint64, do func([]store.ThreadFact) error) (lost time.Time, err error) {
			f, err := foldTurns(ctx, log, behind, "", anonymous, logger, do)
			return f.lost, err
		},
		Kept: func() (*history.Keeping, error) {
			kept, err := termsBefore(dir, bounds.Kept())
			if errors.Is(err, errTermsFile) { // which openSharedThreads reports
				err = nil
			}
			return kept, err
		},
		Accepts: lossAccepted(dir, logger, time.Now),
		OnRestored: func(r redisstore.Restored) {
			if r.Records+r.Threads+r.Keys+r.Running+r.Uses+r.Approvals == 0 && !r.Incomplete {
				return
			}
			logger.Warn("put back into Redis what it did not have any more", "behind_seq", r.Behind, "of_this_process", r.Records,
				"records_of_threads", r.Threads,
				"keys_whose_answers_are_lost", r.Keys, "calls_without_outcome", r.Running, "uses_of_approvals", r.Uses,
				"approvals_ended", r.Approvals)
			if r.Incomplete {
				logger.Error("records of the audit log are missing from the time that Redis has lost: calls with an idempotency key are refused; put the rotated files back, or accept the loss with callgate audit accept-loss")
			}
		},
	}
}

// factOf is what a record says to a store.
func factOf(r *audit.Record) (f store.Fact, ok bool) {
	f = store.Fact{At: r.Time, Call: store.Call{
		ID: r.CallID, Scope: store.Scope{Principal: r.Principal, Workspace: r.Workspace, Project: r.Project}, Digest: r.RequestSHA256,
		Task: store.Task{
			Tool: r.Tool, Version: r.ToolVersion, Agent: r.Agent, RequestID: r.RequestID, Trace: r.TraceID, Thread: r.Thread,
			Ledger: r.Ledger,
			Input:  r.InputSHA256, Config: r.ConfigDigest, Using: r.Approvals, Spends: r.Spends,
		},
	}}
	switch r.Event {
	case audit.Decision:
		f.Kind = store.Executed
		if r.Mode == audit.Enforce {
			f.Kind = store.HandedOver
		}
		if r.KeySHA256 != "" {
			hash, err := hex.DecodeString(r.KeySHA256)
			if err != nil {
				return f, false
			}
			f.KeyHash = hash
		}
		return f, true
	case audit.Ending:
		f.Kind = store.OutcomeKnown
		if r.Verdict == audit.Refused {
			f.Kind = store.NotExecuted
		}
		return f, true
	}
	f.Kind, f.Approval = store.ApprovalEnded, r.CallID
	f.Ended = approval.Ending{By: r.Principal, At: r.Time, Reason: r.Reason}
	switch r.Code {
	case audit.No:
		f.Ended.End = approval.EndDenied
	case audit.Withdrawn:
		f.Ended.End = approval.EndWithdrawn
	case audit.Lapsed:
		f.Ended.End = approval.EndExpired
	case audit.Revoked:
		f.Ended.End = approval.EndRevoked
		if i := slices.IndexFunc(r.Approvals, store.IsGrant); i >= 0 {
			f.Kind, f.Grant = store.GrantRevoked, r.Approvals[i]
		}
	default:
		return f, false
	}
	return f, true
}
