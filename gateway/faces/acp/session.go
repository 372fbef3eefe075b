package acp

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
)

// maxOpen bounds the sessions that are open on a connection.
const maxOpen = 64

// newSession opens a session.
func (c *connection) newSession(ctx context.Context, p wire.NewSessionRequest) (wire.NewSessionResponse, error) {
	s := &session{conn: c, id: rand.Text()}
	if err := c.enter(ctx, s, p.Cwd, p.AdditionalDirectories, p.MCPServers); err != nil {
		return wire.NewSessionResponse{}, err
	}
	return wire.NewSessionResponse{SessionID: s.id}, c.add(s)
}

// loadSession opens a session that was kept, and shows all of it.
func (c *connection) loadSession(ctx context.Context, p wire.OpenSessionRequest) (wire.OpenSessionResponse, error) {
	s, err := c.reopen(ctx, p)
	if err != nil {
		return wire.OpenSessionResponse{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return wire.OpenSessionResponse{}, errRunning
	}
	for _, u := range s.shown.updates() {
		if err := c.conn.NotifyContext(ctx, wire.MethodSessionUpdate, wire.SessionNotification{SessionID: s.id, Update: u}); err != nil {
			return wire.OpenSessionResponse{}, err
		}
	}
	return wire.OpenSessionResponse{}, nil
}

// resumeSession opens a session that was kept, and shows nothing of it.
func (c *connection) resumeSession(ctx context.Context, p wire.OpenSessionRequest) (wire.OpenSessionResponse, error) {
	_, err := c.reopen(ctx, p)
	return wire.OpenSessionResponse{}, err
}

// reopen returns a session that is open or was kept, in the folders of a request.
func (c *connection) reopen(ctx context.Context, p wire.OpenSessionRequest) (*session, error) {
	s := c.session(p.SessionID)
	if s == nil {
		kept, err := c.keptNow(ctx)
		if err != nil {
			return nil, err
		}
		if s, err = kept.read(p.SessionID); err != nil {
			return nil, err
		}
		s.conn = c
	}
	if err := c.enter(ctx, s, p.Cwd, p.AdditionalDirectories, p.MCPServers); err != nil {
		return nil, err
	}
	return s, c.add(s)
}

// enter checks the folders and servers of a request, and has a session work in them.
func (c *connection) enter(ctx context.Context, s *session, cwd string, others []string, servers []wire.MCPServer) error {
	admission, err := c.face.options.Turns.Executor.Kernel.Admit(ctx, c.request)
	if err != nil {
		return err
	}
	bounds, err := admission.Bounds()
	if err != nil {
		return err
	}
	for _, path := range append([]string{cwd}, others...) {
		if err := bounds.Within(boundary.KindPath, path); err != nil {
			return refusal.New(refusal.BoundaryViolation, "The folder "+quoted(path)+" is outside this project. "+err.Error()+
				" Open a folder below its roots; or the operator adds this one to them, in workspaces.yaml.")
		}
	}
	for _, server := range servers {
		if !c.face.options.Accepted(server) {
			return refusal.New(refusal.BadRequest,
				"The MCP server "+quoted(server.Name)+" is not one that the operator has accepted, so the session was not opened. "+
					"Leave it out; or the operator names it in servers.yaml and accepts its tools: callgate servers accept NAME")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return errRunning
	}
	s.admission, s.cwd, s.others, s.root = admission, cwd, slices.Clone(others), ""
	if !bounds.StartsAt(cwd) && len(bounds.Roots) > 0 {
		s.root = bounds.Roots[0]
	}
	return nil
}

// commandsIn is the folder of a command that does not say where it runs: relative words of a call were judged from
// the first root. It is empty where that is the folder of the session.
func (s *session) commandsIn() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.root
}

// add takes an open session.
func (c *connection) add(s *session) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if open := c.sessions[s.id]; open != nil && open != s {
		return errRunning // it was opened twice at a time
	}
	if len(c.sessions) >= maxOpen && c.sessions[s.id] == nil {
		return refusal.New(refusal.Overloaded, "Too many sessions are open. Close one, then send the same request again.")
	}
	c.sessions[s.id] = s
	return nil
}

// listSessions lists the sessions that were kept and those that are open, the newest first.
func (c *connection) listSessions(ctx context.Context, p wire.ListSessionsRequest) (wire.ListSessionsResponse, error) {
	if p.Cursor != "" {
		return wire.ListSessionsResponse{},
			refusal.New(refusal.BadRequest, "The cursor is none that was given out: a list is one page here.")
	}
	kept, err := c.keptNow(ctx)
	if err != nil {
		return wire.ListSessionsResponse{}, err
	}
	heads, err := kept.list()
	if err != nil {
		return wire.ListSessionsResponse{}, err
	}
	c.mu.Lock()
	for _, s := range c.sessions {
		heads = slices.DeleteFunc(heads, func(h head) bool { return h.ID == s.id })
		heads = append(heads, s.head())
	}
	c.mu.Unlock()
	slices.SortFunc(heads, func(a, b head) int {
		if at := b.Updated.Compare(a.Updated); at != 0 {
			return at
		}
		return strings.Compare(a.ID, b.ID)
	})
	list := wire.ListSessionsResponse{}
	for _, h := range heads {
		if p.Cwd != "" && h.Cwd != p.Cwd {
			continue
		}
		info := wire.SessionInfo{SessionID: h.ID, Cwd: h.Cwd, AdditionalDirectories: h.Others, Title: h.Title}
		if !h.Updated.IsZero() {
			info.UpdatedAt = h.Updated.Format(time.RFC3339)
		}
		list.Sessions = append(list.Sessions, info)
	}
	return list, nil
}

// closeSession cancels the prompt of a session, and forgets the session once that has ended.
func (c *connection) closeSession(ctx context.Context, p wire.SessionRequest) (wire.EmptyResponse, error) {
	s, err := c.openSession(p.SessionID)
	if err == nil {
		err = s.close(ctx)
	}
	return wire.EmptyResponse{}, err
}

// deleteSession closes a session where it is open, and removes what was kept of it. There need not
// be one of that id.
func (c *connection) deleteSession(ctx context.Context, p wire.SessionRequest) (wire.EmptyResponse, error) {
	if s := c.session(p.SessionID); s != nil {
		if err := s.close(ctx); err != nil {
			return wire.EmptyResponse{}, err
		}
	}
	kept, err := c.keptNow(ctx)
	if err != nil {
		return wire.EmptyResponse{}, err
	}
	return wire.EmptyResponse{}, kept.remove(p.SessionID)
}
