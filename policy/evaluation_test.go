package policy

import (
	"encoding/json"
	"testing"
)

// Whatever the condition is, a failure makes a deny row deny and keeps an allow
// row from allowing.
func TestFailedConditionsRefuse(t *testing.T) {
	allow := mustLoad(t, `p, Analyst, acme/alpha, payments.refund, "args.amount > 1", allow`)
	deny := mustLoad(t, "p, Analyst, acme/alpha, payments.refund, , allow\n"+`p, Analyst, acme/alpha, payments.refund, "args.amount > 1", deny`)
	for _, arguments := range []map[string]any{
		nil, {}, {"amount": nil}, {"amount": "2"}, {"amount": json.Number("12345678901234567890")}, {"amount": json.Number("NaN")},
		{"amount": 0.5}, {"amount": int64(0)}, {"amount": []byte("0")}, {"amount": json.Number("")}, {"amount": json.Number("0x0")},
		{"amount": json.Number("1_0")}, {"amount": json.Number("Infinity")}, {"amount": json.Number("-Inf")}, {"amount": json.Number("+1.5")},
	} {
		r := Request{"Analyst", "acme", "alpha", "payments.refund", arguments, nil}
		for name, p := range map[string]*Policy{"allow": allow, "deny": deny} {
			if d, err := p.Permit(t.Context(), r); d.Allowed || err != nil {
				t.Errorf("%s row, arguments %v: %v, %v", name, arguments, d, err)
			}
		}
	}
	ok := Request{"Analyst", "acme", "alpha", "payments.refund", decode(t, `{"amount":2}`), nil}
	if d, _ := allow.Permit(t.Context(), ok); !d.Allowed {
		t.Error("the allow row never allows")
	}
	ok.Arguments = decode(t, `{"amount":1}`)
	if d, _ := deny.Permit(t.Context(), ok); !d.Allowed {
		t.Error("the deny row always denies")
	}
}
