package acptest

import (
	"encoding/json"
	"errors"
	"fmt"
)

// resultMembers are the members of results that rules are about.
type resultMembers struct {
	ProtocolVersion   int
	AgentCapabilities agentOffers
	AuthMethods       []struct{ Type string }
	SessionID         string `json:"sessionId"`
	StopReason        string
	TerminalID        string
	Outcome           struct{ Outcome, OptionID string }
}

// answered judges an answer to a request, an error where there is no result.
func (r *rules) answered(from Side, method, id string, raw json.RawMessage) error {
	key := from.other().String() + id
	p := r.requested[key]
	delete(r.requested, key)
	var is resultMembers
	if raw != nil {
		if err := json.Unmarshal(raw, &is); err != nil {
			return err
		}
	}
	s := r.sessions[p.SessionID]
	switch method {
	case "session/prompt":
		return s.ended(raw == nil, is.StopReason)
	case "session/load":
		if s != nil {
			s.replays = false
		}
	}
	if method == "session/request_permission" {
		return chosen(p, raw == nil, is)
	}
	if raw == nil {
		return nil
	}
	switch method {
	case "initialize":
		return r.opened(is)
	case "session/new":
		if _, known := r.sessions[is.SessionID]; known || is.SessionID == "" {
			return fmt.Errorf("the session id %q is not new", is.SessionID)
		}
		r.sessions[is.SessionID] = &sessionState{calls: map[string]string{}}
	case "session/resume":
		r.sessions[p.SessionID] = &sessionState{calls: map[string]string{}}
	case "session/close", "session/delete":
		delete(r.sessions, p.SessionID)
	case "terminal/create":
		r.terminals[p.SessionID+"\x00"+is.TerminalID] = false
	}
	return nil
}

// opened judges the answer to initialize.
func (r *rules) opened(is resultMembers) error {
	r.initialized, r.agent = true, is.AgentCapabilities
	if is.ProtocolVersion != 1 {
		return fmt.Errorf("the protocol version is %d, expected 1", is.ProtocolVersion)
	}
	for _, m := range is.AuthMethods {
		if m.Type == "terminal" && !r.client.Auth.Terminal {
			return errors.New("the client offers no authentication in a terminal")
		}
	}
	return nil
}

// ended judges the end of a prompt.
func (s *sessionState) ended(failed bool, stop string) error {
	if s == nil {
		if !failed {
			return errors.New("a prompt of an unknown session has a result")
		}
		return nil
	}
	if s.turns > 0 {
		s.turns--
	}
	if s.turns > 0 {
		return nil // a second prompt, which was refused beside the first
	}
	if s.cancelled && failed {
		return errors.New("a cancelled prompt is answered with an error")
	}
	if stop == "cancelled" || failed {
		return nil
	}
	for id, status := range s.calls {
		if status == "pending" || status == "in_progress" {
			return fmt.Errorf("the prompt ends while the call %q is %s", id, status)
		}
	}
	return nil
}

// chosen judges the answer to a request for a permission.
func chosen(p paramMembers, failed bool, is resultMembers) error {
	if p.cancelled && (failed || is.Outcome.Outcome != "cancelled") {
		return fmt.Errorf("the turn is cancelled, and the outcome is %q", is.Outcome.Outcome)
	}
	if failed || is.Outcome.Outcome != "selected" {
		return nil
	}
	for _, o := range p.Options {
		if o.OptionID == is.Outcome.OptionID {
			return nil
		}
	}
	return fmt.Errorf("the option %q was not offered", is.Outcome.OptionID)
}

// unreleased are the terminals that were not released.
func (r *rules) unreleased() (faults []error) {
	for key, released := range r.terminals {
		if !released {
			faults = append(faults, fmt.Errorf("the terminal %q is not released", key))
		}
	}
	return faults
}
