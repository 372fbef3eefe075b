package configs

import (
	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/upstream"
)

// readUpstreams reads the upstreams file. What a model states of its own stands
// before what its upstream states, and that before the defaults.
func readUpstreams(root node) []upstream.Definition {
	var all []upstream.Definition
	before := len(root.report.faults)
	root.object(field{"upstreams", func(n node) {
		n.list("upstreams", func(_ int, item node) { all = append(all, item.upstream()) })
	}})
	if len(root.report.faults) > before {
		return all
	}
	for _, f := range upstream.Validate(all) {
		root.at("/upstreams"+pointerOf(f.Path)).fail("%s", f.Message)
	}
	return all
}

// upstream reads one. Its models are read last: they start from its rules.
func (n node) upstream() upstream.Definition {
	d := upstream.Defaults()
	var models *node
	fields := []field{
		{"name", func(n node) { n.text("a name", &d.Name) }},
		{"base_url", func(n node) { n.text("the URL before /chat/completions", &d.BaseURL) }},
		{"insecure_http", func(n node) { n.flag("whether plain HTTP may leave this host", &d.InsecureHTTP) }},
		{"key", func(n node) {
			var s Secret
			if n.secret("the key that the provider asks for", &s); s.IsSet() {
				d.Key = s.Read
			}
		}},
		{"models", func(n node) { models = &n }},
		{"timeouts", func(n node) {
			n.object(
				field{"connect", func(n node) { n.duration("how long connecting may take", &d.Timeouts.Connect) }},
				field{"first_byte", func(n node) { n.duration("how long the first byte of an answer may take", &d.Timeouts.FirstByte) }},
				field{"idle", func(n node) { n.duration("how long an answer may stall", &d.Timeouts.Idle) }},
				field{"total", func(n node) { n.duration("how long all may take, other attempts included", &d.Timeouts.Total) }},
			)
		}},
		{"retries", func(n node) { n.small("how often a provider is asked again", 0, 10, &d.Retries) }},
		{"max_body", func(n node) { n.small("the longest completion in bytes", 1<<10, 1<<30, &d.MaxBody) }},
		{"max_event", func(n node) { n.small("the longest event of a stream in bytes", 1<<10, 1<<30, &d.MaxEvent) }},
		{"max_stream", func(n node) { n.small("the longest stream in bytes", 1<<10, 1<<30, &d.MaxStream) }},
		{"max_events", func(n node) { n.small("how many events a stream may have", 1, 1<<30, &d.MaxEvents) }},
	}
	n.object(append(fields, ruleFields(&d.Rules)...)...)
	if n.Kind != yaml.MappingNode {
		return d
	}
	for _, key := range []string{"name", "base_url", "models"} {
		if _, _, ok := n.child(key); !ok {
			n.fail("found an upstream without %s; expected name, base_url and models", key)
		}
	}
	if models != nil {
		models.list("models", func(_ int, item node) { d.Models = append(d.Models, item.model(d.Rules)) })
	}
	return d
}

// model reads a model: its name, or a mapping that says more.
func (n node) model(rules upstream.Rules) upstream.Model {
	var m upstream.Model
	if n.Kind != yaml.MappingNode {
		n.text("a model, as a name or as a mapping with the key id", &m.ID)
		return m
	}
	fields := append([]field{
		{"id", func(n node) { n.text("what the application says", &m.ID) }},
		{"as", func(n node) { n.text("what the provider is told", &m.As) }},
	}, ruleFields(&rules)...)
	n.object(fields...)
	if _, _, ok := n.child("id"); !ok {
		n.fail("found a model without id; expected the name that the application says")
	}
	m.Rules = &rules
	return m
}

// ruleFields are the keys that an upstream and a model may have.
func ruleFields(r *upstream.Rules) []field {
	return []field{
		{"protocol", func(n node) { word(n, "how the model says its calls", &r.Protocol, upstream.Native, upstream.Text) }},
		{"modes", func(n node) {
			r.Modes = nil
			n.list("modes", func(_ int, item node) {
				var mode upstream.Mode
				word(item, "who runs a judged call", &mode, upstream.Enforce, upstream.Orchestrate)
				r.Modes = append(r.Modes, mode)
			})
		}},
		{"present", func(n node) {
			word(n, "how calls of the text protocol are shown", &r.Present, upstream.AsToolCalls, upstream.AsContent)
		}},
		{"native_prose", func(n node) {
			word(n, "what becomes of text beside native calls", &r.NativeProse, upstream.Pass, upstream.Drop, upstream.Refuse)
		}},
		{"parallel", func(n node) {
			word(n, "what becomes of several calls in one turn", &r.Parallel, upstream.Pass, upstream.Refuse)
		}},
		{"reasoning", func(n node) {
			word(n, "what becomes of reasoning", &r.Reasoning, upstream.Pass, upstream.Drop)
		}},
		{"audio", func(n node) {
			word(n, "what becomes of speech", &r.Audio, upstream.Pass, upstream.Drop)
		}},
		{"stream_buffer", func(n node) {
			word(n, "what is held back of a stream", &r.StreamBuffer, upstream.Parser, upstream.Whole)
		}},
		{"request_members", func(n node) {
			r.RequestMembers = nil
			n.texts("members of a request that are sent on besides those that are known to be harmless", &r.RequestMembers)
		}},
		{"repairs", func(n node) { n.small("how often in a row a model may mend a completion", 0, 100, &r.Repairs) }},
		{"steps", func(n node) { n.small("how many turns a run may have", 1, 1000, &r.Steps) }},
		{"wall_time", func(n node) { n.duration("how long a run may take", &r.WallTime) }},
		{"tokens", func(n node) { n.whole("how many tokens a run may cost, 0 for no bound", 0, 1<<53, &r.Tokens) }},
	}
}

// word reads one of a few words of a type of its own.
func word[W ~string](n node, of string, into *W, words ...W) {
	plain := make([]string, len(words))
	for i, w := range words {
		plain[i] = string(w)
	}
	found := string(*into)
	n.choice(of, plain, &found)
	*into = W(found)
}

// small reads a whole number that an int holds.
func (n node) small(of string, low, high int64, into *int) {
	found := int64(*into)
	n.whole(of, low, high, &found)
	*into = int(found)
}
