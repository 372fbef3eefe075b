package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// Ask keeps an approval, or joins one.
func (e *Engine) Ask(ctx context.Context, a approval.Approval) (kept approval.Approval, joined bool, err error) {
	if err := CheckNew(&a); err != nil {
		return kept, false, err
	}
	err = e.change(ctx, func(s *step) error {
		kept, joined, err = s.ask(&a)
		return err
	})
	return kept, joined, err
}

// ask is the transition of Ask. All approvals of one call are asked through one record, so that of
// equal questions at once one is kept.
func (s *step) ask(a *approval.Approval) (kept approval.Approval, joined bool, err error) {
	same, err := get[Asked](s, AskRecord, a.ID)
	if err != nil {
		return kept, false, err
	}
	if same != nil {
		return same.Approval, false, a.SameQuestion(&same.Approval)
	}
	others, err := s.answers(a.Digest)
	if err != nil {
		return kept, false, err
	}
	if answer := answerOf(others, a, s.now); answer != nil {
		return *answer, true, nil
	}
	question := &Question{}
	for i := range others {
		if k := &others[i]; k.Live(s.now) || k.Stands(s.now) {
			question.Approvals = append(question.Approvals, k.ID)
		}
	}
	live := Row{At: s.now.UnixMicro() + 1}
	s.commit.Rooms = append(s.commit.Rooms, Room{Index{ClosingIndex, ""}, live, MaxLive},
		Room{Index{PrincipalsClosing, a.Principal}, live, MaxLiveOfPrincipal})
	asked := &Asked{Approval: *a}
	asked.Notice.change(s.now)
	question.Approvals = append(question.Approvals, a.ID)
	if err := s.put(QuestionRecord, a.Digest, question); err != nil {
		return kept, false, err
	}
	return *a, false, s.put(AskRecord, a.ID, asked)
}

// answers reads the approvals that may answer for a call.
func (s *step) answers(digest string) (found []approval.Approval, err error) {
	question, err := get[Question](s, QuestionRecord, digest)
	if err != nil || question == nil {
		return nil, err
	}
	for _, id := range question.Approvals {
		a, err := get[Asked](s, AskRecord, id)
		if err != nil {
			return nil, err
		}
		if a != nil {
			found = append(found, a.Approval)
		}
	}
	return found, nil
}

// replace puts a changed approval in the place of what was read, and has everybody told of it. Where
// its revision says that nothing has changed, it does nothing.
func (s *step) replace(a approval.Approval) error {
	was, err := get[Asked](s, AskRecord, a.ID)
	if err != nil || was == nil || a.Revision == was.Revision {
		return err
	}
	now := *was
	now.Approval = a
	now.Notice.change(s.now)
	return s.put(AskRecord, a.ID, &now)
}

// changeApproval makes one change of an approval.
func (e *Engine) changeApproval(ctx context.Context, id string,
	change func(*approval.Approval, time.Time) error) (a approval.Approval, err error) {
	err = e.change(ctx, func(s *step) error {
		was, err := get[Asked](s, AskRecord, id)
		if err != nil {
			return err
		}
		if was == nil {
			return ErrNotFound
		}
		a = was.Approval
		if err := change(&a, s.now); err != nil {
			return err
		}
		return s.replace(a)
	})
	if err != nil {
		return approval.Approval{}, err
	}
	return a, nil
}

// Vote casts a vote.
func (e *Engine) Vote(ctx context.Context, id string, v approval.Vote) (approval.Approval, error) {
	return e.changeApproval(ctx, id, func(a *approval.Approval, now time.Time) error {
		_, err := a.Cast(v, now)
		return err
	})
}

// EndApproval ends an approval.
func (e *Engine) EndApproval(ctx context.Context, id string, end approval.Ending) (approval.Approval, error) {
	return e.changeApproval(ctx, id, func(a *approval.Approval, now time.Time) error { return a.Finish(end, now) })
}

// Approval returns an approval.
func (e *Engine) Approval(ctx context.Context, id string) (approval.Approval, error) {
	a, err := view[Asked](ctx, e, AskRecord, id)
	switch {
	case err != nil:
		return approval.Approval{}, err
	case a == nil || a.Outlived(e.now()):
		return approval.Approval{}, ErrNotFound
	}
	return a.Approval, nil
}

// everyRow is a limit for those who read a whole index.
const everyRow = 1 << 30

// Approvals returns approvals in the order of their ids.
func (e *Engine) Approvals(ctx context.Context, f ApprovalFilter) (found []approval.Approval, err error) {
	now := e.now()
	take := func(a *Asked) bool {
		if len(found) < f.Limit && f.Matches(&a.Approval, now) && !a.Outlived(now) {
			found = append(found, a.Approval)
		}
		return len(found) < f.Limit
	}
	if !f.Live {
		err = e.asked(ctx, AskedIndex, Row{0, f.After}, lastRow, take)
		return found, err
	}
	ids, err := e.ids(ctx, Index{ClosingIndex, ""}, Row{At: now.UnixMicro()}, lastRow, everyRow)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id <= f.After })
	slices.Sort(ids)
	for batch := range slices.Chunk(ids, readBatch) { // a record may be long
		if more, err := views(ctx, e, AskRecord, batch, take); err != nil || !more {
			return found, err
		}
	}
	return found, nil
}

// asked passes the approvals of an index, behind a row and not behind another, to do.
func (e *Engine) asked(ctx context.Context, index IndexName, behind, to Row, do func(*Asked) (more bool)) error {
	return indexed(ctx, e, AskRecord, Index{index, ""}, behind, to, everyRow, do)
}

// Consents returns the approvals of a digest, and the grants of keys.
func (e *Engine) Consents(ctx context.Context, principal, digest string,
	keys []string) (found []approval.Approval, grants []approval.Grant, err error) {
	now := e.now()
	question, err := view[Question](ctx, e, QuestionRecord, digest)
	if err != nil {
		return nil, nil, err
	}
	if question != nil {
		if _, err := views(ctx, e, AskRecord, question.Approvals, func(a *Asked) bool {
			if a.Principal == principal && (a.Live(now) || a.Stands(now)) {
				found = append(found, a.Approval)
			}
			return true
		}); err != nil {
			return nil, nil, err
		}
		slices.SortFunc(found, func(a, b approval.Approval) int { return cmp.Compare(a.ID, b.ID) })
	}
	var ids []string
	for _, key := range keys {
		some, err := e.ids(ctx, Index{GrantsWithKey, key}, firstRow, lastRow, everyRow)
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, some...)
	}
	for batch := range slices.Chunk(ids, readBatch) {
		if _, err := views(ctx, e, GrantRecord, batch, func(g *approval.Grant) bool {
			if g.Live(now) {
				grants = append(grants, *g)
			}
			return true
		}); err != nil {
			return nil, nil, err
		}
	}
	return found, grants, nil
}

// LiveApprovals returns which approvals are live, and how many grants.
func (e *Engine) LiveApprovals(ctx context.Context) (live []LiveApproval, grants int, err error) {
	now := e.now()
	err = e.asked(ctx, ClosingIndex, Row{At: now.UnixMicro()}, lastRow, func(a *Asked) bool {
		if a.Live(now) {
			live = append(live, LiveApproval{a.ID, a.Revision})
		}
		return true
	})
	if err == nil {
		err = e.scan(ctx, Index{LapsingIndex, ""}, rowsUntil(now), lastRow, everyRow, scanBatch, func(rows []Row) (bool, error) {
			grants += len(rows)
			return true, nil
		})
	}
	return live, grants, err
}

// Lapsed returns approvals that have expired and are not marked.
func (e *Engine) Lapsed(ctx context.Context, limit int) (lapsed []approval.Approval, err error) {
	now := e.now()
	err = e.asked(ctx, ClosingIndex, firstRow, rowsUntil(now), func(a *Asked) bool {
		if len(lapsed) < limit && a.open() && !a.Live(now) {
			lapsed = append(lapsed, a.Approval)
		}
		return len(lapsed) < limit
	})
	return lapsed, err
}

// AddGrant keeps a grant.
func (e *Engine) AddGrant(ctx context.Context, g approval.Grant) error {
	if !IsGrant(g.ID) || len(g.ID) > maxID {
		return ErrNoID
	}
	return e.change(ctx, func(s *step) error {
		if kept, err := get[approval.Grant](s, GrantRecord, g.ID); err != nil || kept != nil && !g.Opened.After(kept.Until) {
			return err
		}
		s.commit.Rooms = append(s.commit.Rooms, Room{Index{LapsingIndex, ""}, rowsUntil(s.now), MaxGrants})
		return s.put(GrantRecord, g.ID, &g)
	})
}

// Grants returns live grants in the order of their ids.
func (e *Engine) Grants(ctx context.Context, after string, limit int) (found []approval.Grant, err error) {
	now := e.now()
	err = indexed(ctx, e, GrantRecord, Index{GrantIndex, ""}, Row{0, after}, lastRow, everyRow, func(g *approval.Grant) bool {
		if g.Live(now) && len(found) < limit {
			found = append(found, *g)
		}
		return len(found) < limit
	})
	return found, err
}

// RevokeGrant ends a grant.
func (e *Engine) RevokeGrant(ctx context.Context, id string) (g approval.Grant, err error) {
	err = e.change(ctx, func(s *step) error {
		kept, err := get[approval.Grant](s, GrantRecord, id)
		if err != nil {
			return err
		}
		switch {
		case kept != nil && kept.Live(s.now):
		case g.ID != "":
			return nil // it was ended by this, and the reply was lost, or by another at the same time
		default:
			return ErrNotFound
		}
		g = *kept
		revoked := g.Revoked(s.now)
		return s.put(GrantRecord, id, &revoked)
	})
	return g, err
}

// WatchApproval returns a watch for the next change of an approval.
func (e *Engine) WatchApproval(id string) (*Watch, error) { return e.approvalWatchers.Add(id) }

// SweepApprovals removes approvals and grants that are outlived.
func (e *Engine) SweepApprovals(ctx context.Context, limit int) (swept int, err error) {
	now := e.now()
	for _, sweep := range []struct {
		index IndexName
		until time.Time
		rule  func(s *step, id string) (gone bool, err error)
	}{
		{OverIndex, now.Add(-approval.Retention), (*step).sweepApproval},
		{ClosingIndex, now.Add(-approval.Retention), (*step).sweepApproval},
		{LapsingIndex, now, (*step).sweepGrant},
	} {
		ids, err := e.ids(ctx, Index{sweep.index, ""}, firstRow, rowsUntil(sweep.until), max(0, limit-swept))
		if err != nil {
			return swept, err
		}
		for batch := range slices.Chunk(ids, sweepBatch) {
			n := 0
			if err := e.change(ctx, func(s *step) error {
				n = 0
				for _, id := range batch {
					gone, err := sweep.rule(s, id)
					if err != nil {
						return err
					}
					if gone {
						n++
					}
				}
				return nil
			}); err != nil {
				return swept, err
			}
			swept += n
		}
	}
	return swept, nil
}

func (s *step) sweepApproval(id string) (gone bool, err error) {
	a, err := get[Asked](s, AskRecord, id)
	if err != nil || a == nil || !a.Outlived(s.now) {
		return false, err
	}
	if err := s.drop(AskRecord, id); err != nil {
		return false, err
	}
	question, err := get[Question](s, QuestionRecord, a.Digest)
	if err != nil || question == nil || !slices.Contains(question.Approvals, id) {
		return true, err
	}
	var rest Value
	if to := slices.DeleteFunc(slices.Clone(question.Approvals), func(other string) bool { return other == id }); len(to) > 0 {
		rest = &Question{to}
	}
	return true, s.put(QuestionRecord, a.Digest, rest)
}

func (s *step) sweepGrant(id string) (gone bool, err error) {
	g, err := get[approval.Grant](s, GrantRecord, id)
	if err != nil || g == nil || !g.Outlived(s.now) {
		return false, err
	}
	return true, s.drop(GrantRecord, id)
}

// ClaimNotices implements Notices.
func (e *Engine) ClaimNotices(ctx context.Context, limit int, lease time.Duration) (notices []Notice, err error) {
	ids, err := e.ids(ctx, Index{NewsIndex, ""}, firstRow, rowsUntil(e.now()), limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	err = e.change(ctx, func(s *step) error {
		notices = nil
		for _, id := range ids {
			was, err := get[Asked](s, AskRecord, id)
			if err != nil {
				return err
			}
			if was == nil || was.Notice.at.IsZero() || was.Notice.at.After(s.now) {
				continue
			}
			a := *was
			a.Notice.take(lease, s.now)
			n := Notice{Approval: a.Approval, Notified: a.Notified, Tries: a.Notice.tries, Claim: a.Notice.claim}
			n.Approval.Arguments = nil
			notices = append(notices, n)
			if err := s.put(AskRecord, id, &a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return notices, nil
}

// SettleNotice implements Notices.
func (e *Engine) SettleNotice(ctx context.Context, n *Notice, notified approval.Notified, again time.Duration) error {
	return e.change(ctx, func(s *step) error {
		was, err := get[Asked](s, AskRecord, n.Approval.ID)
		if err != nil {
			return err
		}
		if was == nil {
			return ErrNotFound
		}
		a := *was
		a.Notified |= notified
		a.Notice.settle(n.Claim, again, s.now)
		return s.put(AskRecord, a.ID, &a)
	})
}
