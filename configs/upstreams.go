package configs

import "github.com/callgate/callgate/upstream"

// readUpstreams reads the upstreams file. What a model states of its own stands
// before what its upstream states, and that before the defaults.
func readUpstreams(root Node) []upstream.Definition {
	var all []upstream.Definition
	ok := root.Object(Field("upstreams", func(n Node) {
		n.List("upstreams", func(_ int, item Node) { all = append(all, readUpstream(item)) })
	}))
	if !ok {
		return all
	}
	for _, f := range upstream.Validate(all) {
		root.At("/upstreams"+Pointer(f.Path)).Fail("%s", f.Message)
	}
	return all
}

// readUpstream reads one. Its models are read last: they start from its rules.
func readUpstream(n Node) upstream.Definition {
	d := upstream.Defaults()
	var models *Node
	fields := []FieldReader{
		Field("name", func(n Node) { n.Text("a name", &d.Name) }),
		Field("base_url", func(n Node) { n.Text("the URL before /chat/completions", &d.BaseURL) }),
		Field("insecure_http", func(n Node) { n.Bool("whether plain HTTP may leave this host", &d.InsecureHTTP) }),
		Field("key", func(n Node) {
			var s Secret
			if readSecret(n, "the key that the provider asks for", &s); s.IsSet() {
				d.Key = s.Read
			}
		}),
		Field("models", func(n Node) { models = &n }),
		Field("timeouts", func(n Node) {
			n.Object(
				Field("connect", func(n Node) { n.Duration("how long connecting may take", &d.Timeouts.Connect) }),
				Field("first_byte", func(n Node) { n.Duration("how long the first byte of an answer may take", &d.Timeouts.FirstByte) }),
				Field("idle", func(n Node) { n.Duration("how long an answer may stall", &d.Timeouts.Idle) }),
				Field("total", func(n Node) { n.Duration("how long all may take, other attempts included", &d.Timeouts.Total) }),
			)
		}),
		Field("retries", func(n Node) { n.SmallInt("how often a provider is asked again", 0, 10, &d.Retries) }),
		Field("max_body", func(n Node) { n.SmallInt("the longest completion in bytes", 1<<10, 1<<30, &d.MaxBody) }),
		Field("max_event", func(n Node) { n.SmallInt("the longest event of a stream in bytes", 1<<10, 1<<30, &d.MaxEvent) }),
		Field("max_stream", func(n Node) { n.SmallInt("the longest stream in bytes", 1<<10, 1<<30, &d.MaxStream) }),
		Field("max_events", func(n Node) { n.SmallInt("how many events a stream may have", 1, 1<<30, &d.MaxEvents) }),
	}
	n.Object(append(fields, ruleFields(&d.Rules)...)...)
	if !n.IsMapping() {
		return d
	}
	for _, key := range []string{"name", "base_url", "models"} {
		if _, _, ok := n.Child(key); !ok {
			n.Fail("found an upstream without %s; expected name, base_url and models", key)
		}
	}
	if models != nil {
		models.List("models", func(_ int, item Node) { d.Models = append(d.Models, readModel(item, d.Rules)) })
	}
	return d
}

// readModel reads a model: its name, or a mapping that says more.
func readModel(n Node, rules upstream.Rules) upstream.Model {
	var m upstream.Model
	if !n.IsMapping() {
		n.Text("a model, as a name or as a mapping with the key id", &m.ID)
		return m
	}
	fields := append([]FieldReader{
		Field("id", func(n Node) { n.Text("what the application says", &m.ID) }),
		Field("as", func(n Node) { n.Text("what the provider is told", &m.As) }),
	}, ruleFields(&rules)...)
	n.Object(fields...)
	if _, _, ok := n.Child("id"); !ok {
		n.Fail("found a model without id; expected the name that the application says")
	}
	m.Rules = &rules
	return m
}

// ruleFields are the keys that an upstream and a model may have.
func ruleFields(r *upstream.Rules) []FieldReader {
	return []FieldReader{
		Field("protocol", func(n Node) { word(n, "how the model says its calls", &r.Protocol, upstream.Native, upstream.Text) }),
		Field("modes", func(n Node) {
			r.Modes = nil
			n.List("modes", func(_ int, item Node) {
				var mode upstream.Mode
				word(item, "who runs a judged call", &mode, upstream.Enforce, upstream.Orchestrate)
				r.Modes = append(r.Modes, mode)
			})
		}),
		Field("present", func(n Node) {
			word(n, "how calls of the text protocol are shown", &r.Present, upstream.AsToolCalls, upstream.AsContent)
		}),
		Field("native_prose", func(n Node) {
			word(n, "what becomes of text beside native calls", &r.NativeProse, upstream.Pass, upstream.Drop, upstream.Refuse)
		}),
		Field("parallel", func(n Node) {
			word(n, "what becomes of several calls in one turn", &r.Parallel, upstream.Pass, upstream.Refuse)
		}),
		Field("reasoning", func(n Node) {
			word(n, "what becomes of reasoning", &r.Reasoning, upstream.Pass, upstream.Drop)
		}),
		Field("audio", func(n Node) {
			word(n, "what becomes of speech", &r.Audio, upstream.Pass, upstream.Drop)
		}),
		Field("stream_buffer", func(n Node) {
			word(n, "what is held back of a stream", &r.StreamBuffer, upstream.Parser, upstream.Whole)
		}),
		Field("request_members", func(n Node) {
			r.RequestMembers = nil
			n.Texts("members of a request that are sent on besides those that are known to be harmless", &r.RequestMembers)
		}),
		Field("repairs", func(n Node) { n.SmallInt("how often in a row a model may mend a completion", 0, 100, &r.Repairs) }),
		Field("steps", func(n Node) { n.SmallInt("how many turns a run may have", 1, 1000, &r.Steps) }),
		Field("wall_time", func(n Node) { n.Duration("how long a run may take", &r.WallTime) }),
		Field("tokens", func(n Node) { n.Int("how many tokens a run may cost, 0 for no bound", 0, 1<<53, &r.Tokens) }),
	}
}

// word reads one of a few words of a type of its own.
func word[W ~string](n Node, of string, into *W, words ...W) {
	plain := make([]string, len(words))
	for i, w := range words {
		plain[i] = string(w)
	}
	found := string(*into)
	n.Choice(of, plain, &found)
	*into = W(found)
}
