package configs

import (
	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

// readUpstreams reads the upstreams file. The settings of a model take precedence over
// those of its upstream, and those over the defaults.
func readUpstreams(root document.Node) []upstream.Definition {
	var all []upstream.Definition
	ok := root.Object(document.Field("upstreams", func(n document.Node) {
		n.List("upstreams", func(_ int, item document.Node) { all = append(all, readUpstream(item)) })
	}))
	if !ok {
		return all
	}
	root.FailAt("/upstreams", upstream.Validate(all))
	return all
}

// buildUpstreams makes what the upstreams file says usable.
func (l *loader) buildUpstreams(root document.Node, definitions []upstream.Definition, c *Config) {
	if c.UpstreamsFile == "" || len(l.report.Faults) > 0 {
		return
	}
	models, err := upstream.New(definitions)
	if err != nil {
		root.At("/upstreams").Fail("%v", err) // the reader has refused what could be wrong
	}
	c.Upstreams = models
}

// readUpstream reads one. Its models are read last: they start from its rules.
func readUpstream(n document.Node) upstream.Definition {
	d := upstream.Defaults()
	var (
		models          *document.Node
		key, credential *tool.Credential
	)
	fields := []document.FieldReader{
		document.Text("name", "a name", &d.Name).Matching(`^[A-Za-z0-9._-]{1,64}$`),
		document.Text("base_url", "the URL before /chat/completions, /messages and /responses", &d.BaseURL).Matching(`^https?://[^/?#@ ][^?#@ ]*$`),
		document.Bool("insecure_http", "whether plain HTTP may leave this host", &d.InsecureHTTP),
		document.Field("key", func(n document.Node) {
			var s secret.Ref
			if secret.DecodeAny(n, "the key that the provider asks for", &s); s.IsSet() {
				key = tool.Bearer(s.String())
			}
		}),
		document.Field("credential", func(n document.Node) { credential = toolfile.ReadCredential(n) }),
		document.Field("models", func(n document.Node) {
			models = &n
			if n.Describing() {
				readModels(n, &d)
				n.HasElements()
			}
		}),
		document.Group("timeouts",
			document.Duration("connect", "how long connecting may take", &d.Timeouts.Connect),
			document.Duration("response", "how long the first byte of a response may take", &d.Timeouts.Response),
			document.Duration("idle", "how long an answer may stall", &d.Timeouts.Idle),
			document.Duration("total", "how long all may take, other attempts included", &d.Timeouts.Total),
		),
		document.Int("retries", "how often a provider is asked again", 0, 10, &d.Retries),
		document.Int("max_body", "the longest completion in bytes", 1<<10, 1<<30, &d.MaxBody),
		document.Int("max_event", "the longest event of a stream in bytes", 1<<10, 1<<30, &d.MaxEvent),
		document.Int("max_stream", "the longest stream in bytes", 1<<10, 1<<30, &d.MaxStream),
		document.Int("max_events", "how many events a stream may have", 1, 1<<30, &d.MaxEvents),
	}
	n.Object(append(fields, ruleFields(&d.Rules)...)...)
	if !n.IsMapping() {
		return d
	}
	n.Requires("found an upstream without %s; expected name, base_url and models", "name", "base_url", "models")
	checkSwitches(n, d.Rules)
	d.Credential = key
	if credential != nil {
		d.Credential = credential
		if key != nil {
			n.At("/credential").Fail("found a credential beside a key; expected one of them")
		}
		reportRun(n, "upstream", "upstream", tool.Run{Type: "http", URL: "https://upstream.invalid/", Credential: credential})
	}
	if models != nil {
		readModels(*models, &d)
	}
	return d
}

func readModels(n document.Node, d *upstream.Definition) {
	n.List("models", func(_ int, item document.Node) { d.Models = append(d.Models, readModel(item, d.Rules)) })
}

// modelPattern is the name of a model, or how names begin and a *, as far as a schema says it.
const modelPattern = `^[^*]+\*?$|^\*$`

// readModel reads a model: its name, or a mapping that says more.
func readModel(n document.Node, rules upstream.Rules) upstream.Model {
	var m upstream.Model
	if !n.IsMapping() {
		const of = "a model, as a name or as a mapping with the key id"
		n.Text(of, &m.ID)
		n.Matching(of, modelPattern)
		return m
	}
	fields := append([]document.FieldReader{
		document.Text("id", "what the application says", &m.ID).Matching(modelPattern),
		document.Text("upstream_model", "the model's name at the provider", &m.UpstreamModel).Matching(`^[^*]+$`),
	}, ruleFields(&rules)...)
	n.Object(fields...)
	n.Describes(func(s *document.Schema) { // its defaults are the values of the upstream
		s.Walk(func(_ []string, s *document.Schema) { s.Default = nil })
	})
	n.Requires("found a model without %s; expected the name that the application says", "id")
	checkSwitches(n, rules)
	m.Rules = &rules
	return m
}

// ruleFields are the keys that an upstream and a model may have.
func ruleFields(r *upstream.Rules) []document.FieldReader {
	return append(wireFields(r),
		document.Choice("protocol", "how the model says its calls", &r.Protocol, upstream.Native, upstream.Text),
		document.Field("modes", func(n document.Node) {
			r.Modes = nil
			n.List("modes", func(_ int, item document.Node) {
				var mode upstream.Mode
				document.ReadChoice(item, "who runs a judged call", &mode, upstream.Enforce, upstream.Orchestrate)
				r.Modes = append(r.Modes, mode)
			})
			n.Unique()
			n.HasElements()
		}),
		document.Choice("call_format", "how calls of the text protocol are shown", &r.CallFormat, upstream.AsToolCalls, upstream.AsContent),
		document.Choice("native_prose", "what becomes of text beside native calls", &r.NativeProse, upstream.Pass, upstream.Drop, upstream.Refuse),
		document.Choice("parallel", "what becomes of several calls in one turn", &r.Parallel, upstream.Pass, upstream.Refuse),
		document.Choice("reasoning", "what becomes of reasoning", &r.Reasoning, upstream.Pass, upstream.Drop),
		document.Choice("audio", "what becomes of speech", &r.Audio, upstream.Pass, upstream.Drop),
		document.Choice("stream_buffer", "what is held back of a stream", &r.StreamBuffer, upstream.Parser, upstream.Whole),
		document.Field("request_members", func(n document.Node) {
			r.RequestMembers = nil
			n.Texts("members of a request that are sent on besides those that are known to be harmless", &r.RequestMembers)
			n.Unique()
		}).Matching(`^[!#-)+-~]{1,64}$`),
		document.Int("max_repairs", "how many refused completions in a row go back to the model", 0, 100, &r.MaxRepairs),
		document.Int("max_turns", "how many turns a run may have", 1, 1000, &r.MaxTurns),
		document.Duration("run_timeout", "how long a run may take", &r.RunTimeout),
		document.Int("token_budget", "how many tokens a run may cost, 0 for no bound", 0, 1<<53, &r.TokenBudget),
		document.Int("default_output_tokens", "the bound of output that a request without one gets under a budget, 0 for none", 0, 1<<40, &r.DefaultOutputTokens),
	)
}
