package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/callgate/callgate/store/approval"
)

// memoryApprovals are the approvals and grants of a Memory, which has their lock.
type memoryApprovals struct {
	watchers Watchers
	byID     map[string]*approval.Approval
	live     map[string]*approval.Approval            // those that nobody has ended and no call has used
	byDigest map[string]map[string]*approval.Approval // by the digest, and the id
	grants   map[string]approval.Grant
	byKey    map[string]map[string]bool // ids of grants by their keys
	notices  NoticeQueue
	notified map[string]approval.Notified
}

func newMemoryApprovals() memoryApprovals {
	return memoryApprovals{
		byID: map[string]*approval.Approval{}, live: map[string]*approval.Approval{}, byDigest: map[string]map[string]*approval.Approval{},
		grants: map[string]approval.Grant{}, byKey: map[string]map[string]bool{}, notified: map[string]approval.Notified{},
	}
}

// Ask keeps an approval, or joins one.
func (m *Memory) Ask(_ context.Context, a approval.Approval) (kept approval.Approval, joined bool, err error) {
	if err := CheckNew(&a); err != nil {
		return kept, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if same := m.approvals.byID[a.ID]; same != nil {
		return *same, false, a.SameQuestion(same)
	}
	for _, k := range m.approvals.byDigest[a.Digest] {
		if Joins(k, &a, now) {
			return *k, true, nil
		}
	}
	all, own := 0, 0
	for _, k := range m.approvals.live {
		if k.Live(now) {
			if all++; k.Principal == a.Principal {
				own++
			}
		}
	}
	if all >= MaxLive || own >= MaxLiveOfPrincipal {
		return kept, false, ErrFull
	}
	m.approvals.byID[a.ID], m.approvals.live[a.ID] = &a, &a
	if m.approvals.byDigest[a.Digest] == nil {
		m.approvals.byDigest[a.Digest] = map[string]*approval.Approval{}
	}
	m.approvals.byDigest[a.Digest][a.ID] = &a
	m.approvals.notices.Changed(a.ID, now)
	return a, false, nil
}

// changeApproval makes one change of an approval.
func (m *Memory) changeApproval(id string, change func(*approval.Approval) error) (approval.Approval, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.approvals.byID[id]
	if kept == nil {
		return approval.Approval{}, ErrNotFound
	}
	changed := *kept
	if err := change(&changed); err != nil {
		return *kept, err
	}
	if changed.Revision != kept.Revision {
		m.keepApproval(kept, changed)
	}
	return changed, nil
}

// keepApproval replaces an approval, and notifies those who watch it.
func (m *Memory) keepApproval(kept *approval.Approval, changed approval.Approval) {
	if *kept = changed; kept.Ended.End != "" || kept.Ran != "" {
		delete(m.approvals.live, kept.ID)
	}
	m.approvals.watchers.Notify(kept.ID)
	m.approvals.notices.Changed(kept.ID, m.now())
}

// Vote casts a vote.
func (m *Memory) Vote(_ context.Context, id string, v approval.Vote) (approval.Approval, error) {
	return m.changeApproval(id, func(a *approval.Approval) error {
		_, err := a.Cast(v, m.now())
		return err
	})
}

// EndApproval ends an approval.
func (m *Memory) EndApproval(_ context.Context, id string, e approval.Ending) (approval.Approval, error) {
	return m.changeApproval(id, func(a *approval.Approval) error { return a.Finish(e, m.now()) })
}

// Approval returns an approval.
func (m *Memory) Approval(_ context.Context, id string) (approval.Approval, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept := m.approvals.byID[id]; kept != nil && !kept.Outlived(m.now()) {
		return *kept, nil
	}
	return approval.Approval{}, ErrNotFound
}

// Approvals returns approvals in the order of their ids.
func (m *Memory) Approvals(_ context.Context, f ApprovalFilter) (found []approval.Approval, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, id := range slices.Sorted(maps.Keys(m.approvals.byID)) {
		if kept := m.approvals.byID[id]; len(found) < f.Limit && f.Matches(kept, now) && !kept.Outlived(now) {
			found = append(found, *kept)
		}
	}
	return found, nil
}

// Consents returns the approvals of a digest, and the grants of keys.
func (m *Memory) Consents(_ context.Context, principal, digest string, keys []string) (found []approval.Approval, grants []approval.Grant, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, kept := range m.approvals.byDigest[digest] {
		if kept.Principal == principal && (kept.Live(now) || kept.Stands(now)) {
			found = append(found, *kept)
		}
	}
	slices.SortFunc(found, func(a, b approval.Approval) int { return cmp.Compare(a.ID, b.ID) })
	for _, key := range keys {
		for id := range m.approvals.byKey[key] {
			if g := m.approvals.grants[id]; g.Live(now) {
				grants = append(grants, g)
			}
		}
	}
	return found, grants, nil
}

// LiveApprovals returns which approvals are live, and how many grants.
func (m *Memory) LiveApprovals(context.Context) (live []LiveApproval, grants int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, kept := range m.approvals.live {
		if kept.Live(now) {
			live = append(live, LiveApproval{kept.ID, kept.Revision})
		}
	}
	for _, g := range m.approvals.grants {
		if g.Live(now) {
			grants++
		}
	}
	return live, grants, nil
}

// Lapsed returns approvals that have expired and are not marked.
func (m *Memory) Lapsed(_ context.Context, limit int) (lapsed []approval.Approval, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, kept := range m.approvals.live {
		if !kept.Live(m.now()) {
			lapsed = append(lapsed, *kept)
		}
	}
	slices.SortFunc(lapsed, func(a, b approval.Approval) int { return a.Closes().Compare(b.Closes()) })
	return lapsed[:min(len(lapsed), max(0, limit))], nil
}

// AddGrant keeps a grant.
func (m *Memory) AddGrant(_ context.Context, g approval.Grant) error {
	if !IsGrant(g.ID) {
		return ErrNoID
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, kept := m.approvals.grants[g.ID]; kept {
		return nil
	}
	if len(m.approvals.grants) >= MaxGrants {
		return ErrFull
	}
	m.approvals.grants[g.ID] = g
	if m.approvals.byKey[g.Key] == nil {
		m.approvals.byKey[g.Key] = map[string]bool{}
	}
	m.approvals.byKey[g.Key][g.ID] = true
	return nil
}

// Grants returns live grants in the order of their ids.
func (m *Memory) Grants(_ context.Context, after string, limit int) (grants []approval.Grant, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.approvals.grants)) {
		if g := m.approvals.grants[id]; id > after && len(grants) < limit && g.Live(m.now()) {
			grants = append(grants, g)
		}
	}
	return grants, nil
}

// RevokeGrant removes a grant.
func (m *Memory) RevokeGrant(_ context.Context, id string) (approval.Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, kept := m.approvals.grants[id]
	if !kept {
		return approval.Grant{}, ErrNotFound
	}
	m.dropGrant(g)
	return g, nil
}

func (m *Memory) dropGrant(g approval.Grant) {
	delete(m.approvals.grants, g.ID)
	if delete(m.approvals.byKey[g.Key], g.ID); len(m.approvals.byKey[g.Key]) == 0 {
		delete(m.approvals.byKey, g.Key)
	}
}

// WatchApproval returns a watch for the next change of an approval.
func (m *Memory) WatchApproval(id string) (*Watch, error) { return m.approvals.watchers.Add(id) }

// SweepApprovals removes approvals that are outlived, and grants that are over.
func (m *Memory) SweepApprovals(_ context.Context, limit int) (swept int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for id, kept := range m.approvals.byID {
		if swept < limit && kept.Outlived(now) {
			delete(m.approvals.byID, id)
			delete(m.approvals.live, id)
			delete(m.approvals.notified, id)
			m.approvals.notices.Remove(id)
			if delete(m.approvals.byDigest[kept.Digest], id); len(m.approvals.byDigest[kept.Digest]) == 0 {
				delete(m.approvals.byDigest, kept.Digest)
			}
			swept++
		}
	}
	for _, g := range m.approvals.grants {
		if swept < limit && !g.Live(now) {
			m.dropGrant(g)
			swept++
		}
	}
	return swept, nil
}

// useApprovals uses up the approvals of a task for its call, all or none of those that it passed by.
func (m *Memory) useApprovals(call string, task *Task) error {
	now := m.now()
	changed := make([]approval.Approval, 0, len(task.Using))
	for _, id := range task.Using {
		if IsGrant(id) {
			if g, kept := m.approvals.grants[id]; !kept || !g.Live(now) {
				return approval.ErrEnded
			}
			continue
		}
		kept := m.approvals.byID[id]
		if kept == nil {
			return approval.ErrEnded
		}
		a := *kept
		if err := a.Use(call, now); err != nil {
			return err
		}
		changed = append(changed, a)
	}
	for _, id := range task.Spends {
		if kept := m.approvals.byID[id]; kept != nil {
			if a := *kept; a.Use(call, now) == nil {
				changed = append(changed, a)
			}
		}
	}
	for _, a := range changed {
		m.keepApproval(m.approvals.byID[a.ID], a)
	}
	return nil
}
