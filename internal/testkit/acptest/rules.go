package acptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// rules are the rules of the protocol that no schema states, over one connection: which
// message may come when, given what came before it. It is told of messages that the schema
// takes, and of the answers to them.
type rules struct {
	initialized bool
	client      clientOffers
	agent       agentOffers
	sessions    map[string]*sessionState
	requested   map[string]paramMembers // by side and id
	terminals   map[string]bool         // by session and id: whether it is released
}

type clientOffers struct {
	FS          struct{ ReadTextFile, WriteTextFile bool }
	Terminal    bool
	Auth        struct{ Terminal bool }
	Elicitation struct{ Form, URL *struct{} }
}

type agentOffers struct {
	LoadSession         bool
	PromptCapabilities  struct{ Image, Audio, EmbeddedContext bool }
	MCPCapabilities     struct{ HTTP, SSE bool } `json:"mcpCapabilities"`
	SessionCapabilities struct{ List, Delete, AdditionalDirectories, Resume, Close *struct{} }
	Auth                struct{ Logout *struct{} }
}

// sessionState is what the rules remember of one session.
type sessionState struct {
	turns     int  // open prompts
	replays   bool // session/load is open
	cancelled bool // the open prompt was cancelled
	calls     map[string]string
}

// paramMembers are the members of the parameters that rules are about.
type paramMembers struct {
	SessionID             string   `json:"sessionId"`
	CWD                   *string  `json:"cwd"`
	AdditionalDirectories []string `json:"additionalDirectories"`
	MCPServers            []struct{ Type string }
	ClientCapabilities    clientOffers
	Prompt                []struct{ Type string }
	Update                *sessionUpdate
	ToolCall              *sessionUpdate
	Options               []struct{ OptionID string }
	Path                  *string
	TerminalID            string
	Mode                  string
	cancelled             bool // session/cancel came while this permission was asked for
}

// sessionUpdate is a session/update.
type sessionUpdate struct {
	Kind       string `json:"sessionUpdate"`
	ToolCallID string
	Title      *string
	Status     *string
	Content    json.RawMessage // of a tool call or a chunk
	Locations  []struct {
		Path string
		Line *int
	}
}

func newRules() *rules {
	return &rules{sessions: map[string]*sessionState{}, requested: map[string]paramMembers{}, terminals: map[string]bool{}}
}

// sent judges a request or a notification.
func (r *rules) sent(from Side, method, id string, raw json.RawMessage) error {
	var p paramMembers
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	if id != "" {
		defer func() { r.requested[from.String()+id] = p }()
	}
	if method == "initialize" {
		r.client = p.ClientCapabilities
		return nil
	}
	if !r.initialized {
		return errors.New("the connection is not initialized")
	}
	if method == "$/cancel_request" {
		return nil
	}
	if from == Client {
		return r.fromClient(method, p)
	}
	s, known := r.sessions[p.SessionID]
	if !known && p.SessionID != "" {
		return fmt.Errorf("there is no session %q", p.SessionID)
	}
	return r.fromAgent(method, s, p)
}

func (r *rules) fromClient(method string, p paramMembers) error {
	if !offered(map[string]bool{
		"session/load":   r.agent.LoadSession,
		"session/list":   r.agent.SessionCapabilities.List != nil,
		"session/delete": r.agent.SessionCapabilities.Delete != nil,
		"session/resume": r.agent.SessionCapabilities.Resume != nil,
		"session/close":  r.agent.SessionCapabilities.Close != nil,
		"logout":         r.agent.Auth.Logout != nil,
	}, method) {
		return errors.New("the agent does not offer it")
	}
	if len(p.AdditionalDirectories) > 0 && r.agent.SessionCapabilities.AdditionalDirectories == nil {
		return errors.New("the agent offers no additional directories")
	}
	directories := p.AdditionalDirectories
	if p.CWD != nil {
		directories = append(directories, *p.CWD)
	}
	for _, path := range directories {
		if err := absolute(path); err != nil {
			return err
		}
	}
	for _, server := range p.MCPServers {
		if !offered(map[string]bool{"http": r.agent.MCPCapabilities.HTTP, "sse": r.agent.MCPCapabilities.SSE}, server.Type) {
			return fmt.Errorf("the agent offers no MCP servers of type %s", server.Type)
		}
	}
	for _, block := range p.Prompt {
		can := r.agent.PromptCapabilities
		if !offered(map[string]bool{"image": can.Image, "audio": can.Audio, "resource": can.EmbeddedContext}, block.Type) {
			return fmt.Errorf("the agent takes no blocks of type %s", block.Type)
		}
	}
	switch method {
	case "session/prompt":
		if s := r.sessions[p.SessionID]; s != nil {
			s.cancelled = s.cancelled && s.turns > 0
			s.turns++
		}
	case "session/load":
		r.sessions[p.SessionID] = &sessionState{replays: true, calls: map[string]string{}}
	case "session/cancel", "session/close":
		r.cancelled(p.SessionID)
	}
	return nil
}

// cancelled marks what a client must answer from now on.
func (r *rules) cancelled(id string) {
	if s := r.sessions[id]; s != nil && s.turns > 0 {
		s.cancelled = true
		for key, p := range r.requested {
			p.cancelled = p.cancelled || p.SessionID == id
			r.requested[key] = p
		}
	}
}

// offered says whether something that must be offered is; anything else may come.
func offered(by map[string]bool, name string) bool {
	yes, gated := by[name]
	return yes || !gated
}

func (r *rules) fromAgent(method string, s *sessionState, p paramMembers) error {
	can := r.client
	if !offered(map[string]bool{
		"fs/read_text_file": can.FS.ReadTextFile, "fs/write_text_file": can.FS.WriteTextFile,
		"terminal/create": can.Terminal, "terminal/output": can.Terminal, "terminal/wait_for_exit": can.Terminal,
		"terminal/kill": can.Terminal, "terminal/release": can.Terminal,
		"elicitation/create": p.Mode == "form" && can.Elicitation.Form != nil || p.Mode == "url" && can.Elicitation.URL != nil,
	}, method) {
		return errors.New("the client does not offer it")
	}
	for _, path := range []*string{p.Path, p.CWD} {
		if path != nil {
			if err := absolute(*path); err != nil {
				return err
			}
		}
	}
	switch method {
	case "session/update":
		return s.updated(p.Update)
	case "session/request_permission":
		return s.asks(p)
	case "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		key := p.SessionID + "\x00" + p.TerminalID
		if released, known := r.terminals[key]; !known || released {
			return fmt.Errorf("the session has no terminal %q", p.TerminalID)
		}
		if method == "terminal/release" {
			r.terminals[key] = true
		}
	}
	return nil
}

// asks judges a request for a permission.
func (s *sessionState) asks(p paramMembers) error {
	if len(p.Options) == 0 {
		return errors.New("there is no option")
	}
	for i, o := range p.Options {
		for _, other := range p.Options[:i] {
			if o == other {
				return fmt.Errorf("the option %q is there twice", o.OptionID)
			}
		}
	}
	if s.turns == 0 {
		return errors.New("no prompt is open")
	}
	return p.ToolCall.places()
}

// outsideTurns are the updates that may come while no prompt is open.
var outsideTurns = []string{"available_commands_update", "current_mode_update", "config_option_update", "session_info_update",
	"usage_update"}

// updated judges an update of a session.
func (s *sessionState) updated(u *sessionUpdate) error {
	if s.turns == 0 && !s.replays && !slices.Contains(outsideTurns, u.Kind) {
		return fmt.Errorf("%s: no prompt is open, and no session is loaded", u.Kind)
	}
	if u.Kind != "tool_call" && u.Kind != "tool_call_update" {
		return nil
	}
	before, known := s.calls[u.ToolCallID]
	if known == (u.Kind == "tool_call") {
		return fmt.Errorf("%s: whether the call %q is known: %v", u.Kind, u.ToolCallID, known)
	}
	if u.Title != nil && *u.Title == "" {
		return fmt.Errorf("the call %q has an empty title", u.ToolCallID)
	}
	status := before
	if !known {
		status = "pending"
	}
	if u.Status != nil {
		status = *u.Status
	}
	s.calls[u.ToolCallID] = status
	order := []string{"pending", "in_progress", "completed", "failed"}
	terminal := slices.Index(order, before) >= 2
	if known && status != before && (terminal || slices.Index(order, status) < slices.Index(order, before)) {
		return fmt.Errorf("the call %q goes from %s to %s", u.ToolCallID, before, status)
	}
	return u.places()
}

// places: paths are absolute, and lines count from 1.
func (u *sessionUpdate) places() error {
	for _, l := range u.Locations {
		if err := absolute(l.Path); err != nil {
			return err
		}
		if l.Line != nil && *l.Line < 1 {
			return fmt.Errorf("the line is %d, expected 1 or more", *l.Line)
		}
	}
	var content []struct{ Type, Path string }
	if len(u.Content) > 0 {
		if err := json.Unmarshal(u.Content, &content); err != nil {
			return err
		}
	}
	for _, c := range content {
		if c.Type == "diff" {
			if err := absolute(c.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

func absolute(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("the path %q is not absolute", path)
	}
	return nil
}
