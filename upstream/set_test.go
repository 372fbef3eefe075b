package upstream

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func provider(name string, models ...Model) Definition {
	d := Defaults()
	d.Name, d.BaseURL, d.Models = name, "https://api.example.com/v1", models
	return d
}

func TestLookup(t *testing.T) {
	other := Defaults().Rules
	other.Protocol, other.Modes = Text, []Mode{Orchestrate}
	s, err := New([]Definition{
		provider("a", Model{ID: "*"}, Model{ID: "gpt-4.1", UpstreamModel: "gpt-4.1-2026"}, Model{ID: "gpt-*"}),
		provider("b", Model{ID: "gpt-4*", UpstreamModel: "one", Rules: &other}, Model{ID: "local"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string][3]string{
		"gpt-4.1": {"a", "gpt-4.1-2026", "native"}, "gpt-4.1-mini": {"b", "one", "text"}, "gpt-4": {"b", "one", "text"}, "gpt-": {"a", "gpt-", "native"},
		"gpt": {"a", "gpt", "native"}, "local": {"b", "local", "native"}, "LOCAL": {"a", "LOCAL", "native"}, "gpt-*": {"a", "gpt-*", "native"}, "x/y:z": {"a", "x/y:z", "native"},
	} {
		r, ok := s.Lookup(model)
		if !ok || r.Model != model || r.Upstream != want[0] || r.UpstreamModel != want[1] || string(r.Rules.Protocol) != want[2] {
			t.Errorf("%s: found %+v", model, r)
		}
	}
	if _, ok := s.Lookup(""); ok {
		t.Error("no model has a route")
	}
	if _, ok := (*Set)(nil).Lookup("x"); ok || (*Set)(nil).Models() != nil {
		t.Error("no set has a route")
	}
	if got := s.Models(); !slices.Equal(got, []ModelInfo{{"gpt-4.1", "a"}, {"local", "b"}}) {
		t.Errorf("found the models %v", got)
	}
	// A caller can change what it has given, and a list that it got, and the set stays as it is.
	s.Models()[0].ID = "x"
	other.Modes[0] = Enforce
	if r, _ := s.Lookup("gpt-4"); r.Rules.Modes[0] != Orchestrate || s.Models()[0].ID != "gpt-4.1" {
		t.Error("the set was changed")
	}
	only, err := New([]Definition{provider("a", Model{ID: "x"})})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := only.Lookup("y"); ok {
		t.Error("a model that nobody named has a route")
	}
}

func TestNoUpstreams(t *testing.T) {
	s, err := New(nil)
	if err != nil || s.Models() != nil {
		t.Errorf("found %v, %v", s, err)
	}
	if _, ok := s.Lookup("x"); ok {
		t.Error("a model has a route")
	}
}

func TestAllowsServerTool(t *testing.T) {
	r := MessagesRules{ServerTools: []string{"web_search", "web_fetch_20250910", "mcp_toolset"}}
	for kind, want := range map[string]bool{
		"web_search": true, "web_search_20250305": true, "web_fetch_20250910": true, "web_fetch": false, "web_fetch_20260318": false, "mcp_toolset": true,
		"web_search_2025030": false, "web_search_2025030x": false, "web_search_20250305_20250305": false, "_20250305": false, "": false, "Web_search": false,
	} {
		if r.AllowsServerTool(kind) != want {
			t.Errorf("%s: expected %v", kind, want)
		}
	}
}

func TestSpeaks(t *testing.T) {
	d := provider("a", Model{ID: "m"})
	d.Rules.Speaks = []Wire{MessagesWire}
	route := routeTo(t, d)
	if route.Speaks(ChatWire) || !route.Speaks(MessagesWire) || route.Speaks(ResponsesWire) {
		t.Error("it speaks messages alone")
	}
}

func TestValidate(t *testing.T) {
	for why, c := range map[string]struct {
		change func(*Definition)
		path   string // empty: it is valid
	}{
		"as it is":                {func(*Definition) {}, ""},
		"no name":                 {func(d *Definition) { d.Name = "" }, "0.name"},
		"a space in the name":     {func(d *Definition) { d.Name = "a b" }, "0.name"},
		"a long name":             {func(d *Definition) { d.Name = strings.Repeat("x", 65) }, "0.name"},
		"no URL":                  {func(d *Definition) { d.BaseURL = "" }, "0.base_url"},
		"a relative URL":          {func(d *Definition) { d.BaseURL = "api.example.com/v1" }, "0.base_url"},
		"another scheme":          {func(d *Definition) { d.BaseURL = "ftp://api.example.com" }, "0.base_url"},
		"an opaque URL":           {func(d *Definition) { d.BaseURL = "https:api.example.com" }, "0.base_url"},
		"user information":        {func(d *Definition) { d.BaseURL = "https://u:p@api.example.com" }, "0.base_url"},
		"a query":                 {func(d *Definition) { d.BaseURL = "https://api.example.com/v1?a=b" }, "0.base_url"},
		"an empty query":          {func(d *Definition) { d.BaseURL = "https://api.example.com/v1?" }, "0.base_url"},
		"a fragment":              {func(d *Definition) { d.BaseURL = "https://api.example.com/v1#" }, "0.base_url"},
		"the whole URL":           {func(d *Definition) { d.BaseURL = "https://api.example.com/v1/chat/completions/" }, "0.base_url"},
		"plain HTTP":              {func(d *Definition) { d.BaseURL = "http://api.example.com/v1" }, "0.base_url"},
		"plain HTTP, allowed":     {func(d *Definition) { d.BaseURL, d.InsecureHTTP = "http://model:8000/v1", true }, ""},
		"plain HTTP of this":      {func(d *Definition) { d.BaseURL = "http://localhost:11434/v1/" }, ""},
		"plain HTTP of 127.1.2.3": {func(d *Definition) { d.BaseURL = "http://127.1.2.3" }, ""},
		"plain HTTP of ::1":       {func(d *Definition) { d.BaseURL = "http://[::1]:1" }, ""},
		"plain HTTP of a name":    {func(d *Definition) { d.BaseURL = "http://localhost.example.com" }, "0.base_url"},
		"plain HTTP of 0x7f.1":    {func(d *Definition) { d.BaseURL = "http://0x7f.1" }, "0.base_url"},
		"no models":               {func(d *Definition) { d.Models = nil }, "0.models"},
		"a model without a name":  {func(d *Definition) { d.Models[0].ID = "" }, "0.models.0.id"},
		"a star inside":           {func(d *Definition) { d.Models[0].ID = "a*b" }, "0.models.0.id"},
		"two stars":               {func(d *Definition) { d.Models[0].ID = "a**" }, "0.models.0.id"},
		"a space in a model":      {func(d *Definition) { d.Models[0].ID = "a b" }, "0.models.0.id"},
		"what cannot be seen":     {func(d *Definition) { d.Models[0].ID = "a\u200b" }, "0.models.0.id"},
		"a long model":            {func(d *Definition) { d.Models[0].ID = strings.Repeat("x", 257) }, "0.models.0.id"},
		"a model twice":           {func(d *Definition) { d.Models = append(d.Models, d.Models[0]) }, "0.models.1.id"},
		"as with a star":          {func(d *Definition) { d.Models[0].UpstreamModel = "a*" }, "0.models.0.upstream_model"},
		"no protocol":             {func(d *Definition) { d.Rules.Protocol = "" }, "0.protocol"},
		"another protocol":        {func(d *Definition) { d.Rules.Protocol = "Text" }, "0.protocol"},
		"a model's protocol":      {func(d *Definition) { d.Models[0].Rules = &Rules{} }, "0.models.0.protocol"},
		"no modes":                {func(d *Definition) { d.Rules.Modes = nil }, "0.modes"},
		"another mode":            {func(d *Definition) { d.Rules.Modes = []Mode{Enforce, "call"} }, "0.modes.1"},
		"a mode twice":            {func(d *Definition) { d.Rules.Modes = []Mode{Enforce, Enforce} }, "0.modes.1"},
		"present":                 {func(d *Definition) { d.Rules.CallFormat = "" }, "0.call_format"},
		"structured_output":       {func(d *Definition) { d.Rules.StructuredOutput = Drop }, "0.structured_output"},
		"native_prose":            {func(d *Definition) { d.Rules.NativeProse = "" }, "0.native_prose"},
		"parallel cannot drop":    {func(d *Definition) { d.Rules.Parallel = Drop }, "0.parallel"},
		"reasoning":               {func(d *Definition) { d.Rules.Reasoning = Refuse }, "0.reasoning"},
		"stream_buffer":           {func(d *Definition) { d.Rules.StreamBuffer = "" }, "0.stream_buffer"},
		"no repairs":              {func(d *Definition) { d.Rules.MaxRepairs = 0 }, ""},
		"fewer repairs":           {func(d *Definition) { d.Rules.MaxRepairs = -1 }, "0.max_repairs"},
		"many repairs":            {func(d *Definition) { d.Rules.MaxRepairs = 101 }, "0.max_repairs"},
		"no steps":                {func(d *Definition) { d.Rules.MaxTurns = 0 }, "0.max_turns"},
		"no wall time":            {func(d *Definition) { d.Rules.RunTimeout = 0 }, "0.run_timeout"},
		"tokens below 0":          {func(d *Definition) { d.Rules.TokenBudget = -1 }, "0.token_budget"},
		"no connect":              {func(d *Definition) { d.Timeouts.Connect = 0 }, "0.timeouts.connect"},
		"a long connect":          {func(d *Definition) { d.Timeouts.Connect = maxConnectTime + 1 }, "0.timeouts.connect"},
		"no first_byte":           {func(d *Definition) { d.Timeouts.Response = 0 }, "0.timeouts.response"},
		"no idle":                 {func(d *Definition) { d.Timeouts.Idle = -time.Second }, "0.timeouts.idle"},
		"a long total":            {func(d *Definition) { d.Timeouts.Total = 25 * time.Hour }, "0.timeouts.total"},
		"retries":                 {func(d *Definition) { d.Retries = 11 }, "0.retries"},
		"max_body":                {func(d *Definition) { d.MaxBody = 0 }, "0.max_body"},
		"max_event":               {func(d *Definition) { d.MaxEvent = 1<<30 + 1 }, "0.max_event"},
		"max_stream":              {func(d *Definition) { d.MaxStream = -1 }, "0.max_stream"},
		"no speaks":               {func(d *Definition) { d.Rules.Speaks = nil }, "0.speaks"},
		"all speaks":              {func(d *Definition) { d.Rules.Speaks = []Wire{ResponsesWire, MessagesWire, ChatWire} }, ""},
		"another speaks":          {func(d *Definition) { d.Rules.Speaks = []Wire{ChatWire, "completions"} }, "0.speaks.1"},
		"a speaks twice":          {func(d *Definition) { d.Rules.Speaks = []Wire{ChatWire, ChatWire} }, "0.speaks.1"},
		"messages as text":        {func(d *Definition) { d.Rules.Speaks, d.Rules.Protocol = []Wire{ChatWire, MessagesWire}, Text }, "0.protocol"},
		"responses as text":       {func(d *Definition) { d.Rules.Speaks, d.Rules.Protocol = []Wire{ResponsesWire}, Text }, "0.protocol"},
		"tools":                   {func(d *Definition) { d.Rules.Tools = "any" }, "0.tools"},
		"tools of the request":    {func(d *Definition) { d.Rules.Tools = FromRequest }, ""},
		"refusals":                {func(d *Definition) { d.Rules.Refusals = "" }, "0.refusals"},
		"refusals as messages":    {func(d *Definition) { d.Rules.Refusals = AsMessage }, ""},
		"server_tools":            {func(d *Definition) { d.Rules.Messages.ServerTools = []string{"web_search", "*"} }, "0.messages.server_tools.1"},
		"messages' mcp_servers":   {func(d *Definition) { d.Rules.Messages.MCPServers = []string{"a", "a"} }, "0.messages.mcp_servers.1"},
		"unknown_blocks":          {func(d *Definition) { d.Rules.Messages.UnknownBlocks = Drop }, "0.messages.unknown_blocks"},
		"safeguards":              {func(d *Definition) { d.Rules.Messages.Safeguards = "any" }, "0.messages.safeguards"},
		"hosted_tools":            {func(d *Definition) { d.Rules.Responses.HostedTools = []string{"a b"} }, "0.responses.hosted_tools.0"},
		"responses' mcp_servers":  {func(d *Definition) { d.Rules.Responses.MCPServers = []string{""} }, "0.responses.mcp_servers.0"},
		"a long label":            {func(d *Definition) { d.Rules.Responses.MCPServers = []string{strings.Repeat("x", 257)} }, "0.responses.mcp_servers.0"},
		"state":                   {func(d *Definition) { d.Rules.Responses.State = "pass" }, "0.responses.state"},
		"unknown_items":           {func(d *Definition) { d.Rules.Responses.UnknownItems = "" }, "0.responses.unknown_items"},
		"Messages' whole URL":     {func(d *Definition) { d.BaseURL = "https://api.example.com/v1/messages" }, "0.base_url"},
		"Responses' whole URL":    {func(d *Definition) { d.BaseURL = "https://api.example.com/v1/responses/" }, "0.base_url"},
		"max_events":              {func(d *Definition) { d.MaxEvents = 0 }, "0.max_events"},
	} {
		d := provider("a", Model{ID: "m"})
		c.change(&d)
		faults := Validate([]Definition{d})
		s, err := New([]Definition{d})
		if c.path == "" {
			if len(faults) > 0 || err != nil || s == nil {
				t.Errorf("%s: found %v, %v", why, faults, err)
			}
			continue
		}
		if len(faults) == 0 || strings.Join(faults[0].Path, ".") != c.path || !strings.Contains(faults[0].Message, "found") || !strings.Contains(faults[0].Message, "expected") || c.change == nil {
			t.Errorf("%s: found %v", why, faults)
			continue
		}
		if s != nil || err == nil || !strings.HasPrefix(err.Error(), c.path+": ") || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: found %v", why, err)
		}
	}
}

func TestValidateAcrossUpstreams(t *testing.T) {
	faults := Validate([]Definition{provider("a", Model{ID: "x"}), provider("a", Model{ID: "y"}, Model{ID: "x"}, Model{ID: "x*"})})
	var paths []string
	for _, f := range faults {
		paths = append(paths, strings.Join(f.Path, "."))
	}
	if !slices.Equal(paths, []string{"1.name", "1.models.1.id"}) {
		t.Errorf("found %v", faults)
	}
}
