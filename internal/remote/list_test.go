package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	fastjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pageOf(next string, items ...string) string {
	var list []string
	for _, name := range items {
		list = append(list, `{"metadata":{"name":"`+name+`"}}`)
	}
	return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1","continue":"` + next +
		`"},"items":[` + strings.Join(list, ",") + `]}`
}

// turn answers the first request with the first answer, and so on; the last one stays.
func turn(answers ...answer) answer {
	return func(n int, w http.ResponseWriter, r *http.Request) {
		answers[min(n, len(answers))-1](n, w, r)
	}
}

func TestBrokenLists(t *testing.T) {
	t.Parallel()
	gone := says(410, status(410, metav1.StatusReasonExpired, "The provided continue parameter is too old"))
	first, last := says(200, pageOf("t", "a", "b")), says(200, pageOf("", "c"))
	whole := pageOf("", "a", "b")
	for name, tc := range map[string]struct {
		answer answer
		names  string
		want   error
		calls  int
	}{
		"TwoPages":               {turn(first, last), "a b c", nil, 2},
		"ItemsNull":              {says(200, `{"kind":"PodList","metadata":{},"items":null}`), "", nil, 1},
		"MetadataLast":           {says(200, `{"items":[{"metadata":{"name":"a"}}],"extra":{"x":[1]},"metadata":{},"kind":"L"}`), "a", nil, 1},
		"ExpiredOnce":            {turn(first, gone, first, last), "a b c", nil, 4},
		"ExpiredForEver":         {turn(first, gone, first, gone, first, gone, first, gone, first, last), "", ErrExpired, 8},
		"HalfAPage":              {says(200, whole[:len(whole)-12]), "", ErrTruncated, 5},
		"HalfAnItem":             {says(200, whole[:len(whole)-5]), "", ErrTruncated, 5},
		"LastBraceMissing":       {says(200, whole[:len(whole)-1]), "", ErrTruncated, 5},
		"HalfASecondPage":        {turn(first, says(200, whole[:len(whole)-12])), "", ErrTruncated, 6},
		"BrokenOffThenWhole":     {turn(first, says(200, whole[:len(whole)-2]), last), "a b c", nil, 3},
		"ShorterThanAnnounced":   {says(200, whole, "Content-Length: 9999"), "", ErrTruncated, 5},
		"NoItems":                {says(200, `{"kind":"PodList","metadata":{}}`), "", ErrTruncated, 5},
		"EmptyPageWithMore":      {turn(first, says(200, pageOf("t"))), "", ErrTruncated, 2},
		"SameTokenForEver":       {says(200, pageOf("t", "a")), "", ErrTooLarge, 11},
		"ItemsAnObject":          {says(200, `{"items":{}}`), "", ErrUnexpected, 1},
		"AnArray":                {says(200, `[]`), "", ErrUnexpected, 1},
		"ItemWithoutName":        {says(200, `{"items":[{}]}`), "", ErrUnexpected, 1},
		"ItemOfOtherType":        {says(200, `{"items":[7]}`), "", ErrUnexpected, 1},
		"SomethingBehind":        {says(200, whole+whole), "", ErrUnexpected, 1},
		"Page":                   {says(200, "<html>", html), "", ErrUnexpected, 1},
		"KindNotServed":          {says(404, "404 page not found", plain, audited), "", ErrNoKind, 1},
		"ForbiddenInTheMiddle":   {turn(first, says(403, "")), "", ErrForbidden, 2},
		"UnavailableInTheMiddle": {turn(first, says(503, ""), last), "a b c", nil, 3},
	} {
		for form, list := range forms {
			t.Run(name+form, func(t *testing.T) {
				t.Parallel()
				g := faulty(t, Options{}, tc.answer)
				got, err := list(t.Context(), g.Client)
				if tc.want == nil && err != nil || !errors.Is(err, tc.want) {
					t.Fatalf("error = %v, want %v", err, tc.want)
				}
				if got != tc.names || g.calls != tc.calls {
					t.Errorf("names = %q after %d requests, want %q after %d", got, g.calls, tc.names, tc.calls)
				}
			})
		}
	}
}

// forms are the two lists, reduced to the items' names. MaxItems is 10.
var forms = map[string]func(context.Context, *Client) (string, error){
	"Metadata": func(ctx context.Context, c *Client) (string, error) {
		items, err := c.ListMeta(ctx, pods, ListOptions{MaxItems: 10})
		return names(items), err
	},
	"Whole": func(ctx context.Context, c *Client) (string, error) {
		items, err := c.List(ctx, pods, ListOptions{MaxItems: 10})
		var out []string
		for _, item := range items {
			out = append(out, item.GetName())
		}
		return strings.Join(out, " "), err
	},
}

func TestPagesAreAskedForAsOne(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 2)
	g := faulty(t, Options{}, func(n int, w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.RequestURI()
		turn(says(200, pageOf("t=1", "a")), says(200, pageOf("", "b")))(n, w, r)
	})
	if _, err := g.ListMeta(t.Context(), pods, ListOptions{Namespace: "n", LabelSelector: "a=b,c", FieldSelector: "x=y"}); err != nil {
		t.Fatal(err)
	}
	const first = "/api/v1/namespaces/n/pods?fieldSelector=x%3Dy&labelSelector=a%3Db%2Cc&limit=500"
	const second = "/api/v1/namespaces/n/pods?continue=t%3D1&fieldSelector=x%3Dy&labelSelector=a%3Db%2Cc&limit=500"
	if a, b := <-asked, <-asked; a != first || b != second {
		t.Errorf("asked for %q and %q", a, b)
	}
}

// bigList is a metadata list as a server gives it for objects with one manager.
func bigList(n int) string {
	item := func(i int) metav1.PartialObjectMetadata {
		fields := `{"f:data":{"f:a":{},"f:b":{},"f:c":{}},"f:metadata":{"f:annotations":{"f:mothership.kyma-project.io/digest":{}},"f:labels":{"f:applyset.kubernetes.io/part-of":{}}}}`
		now := metav1.Now()
		return metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("object-%d", i), Namespace: "demo", UID: "0f0e9c3e-9d3a-4f57-8b5e-6a6f5b2c1d00", ResourceVersion: "12345",
				CreationTimestamp: now,
				Labels:            map[string]string{"applyset.kubernetes.io/part-of": "applyset-wHf5Gity0G0nPN34KuNBIBBEOu2H9ED2KqsblMPFygM-v1"},
				Annotations:       map[string]string{"mothership.kyma-project.io/digest": "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"},
				ManagedFields: []metav1.ManagedFieldsEntry{{
					Manager: "mothership", Operation: "Apply", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
					FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
				}},
			},
		}
	}
	list := metav1.PartialObjectMetadataList{}
	for i := range n {
		list.Items = append(list.Items, item(i))
	}
	return string(mustJSON(list))
}

// BenchmarkDecodeMetadataList decodes one page of 500 objects. Compare with
//
//	go test -run '^$' -bench DecodeMetadata -count 6 ./internal/remote | benchstat -
func BenchmarkDecodeMetadataList(b *testing.B) {
	text := bigList(500)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		items := make([]metav1.PartialObjectMetadata, 0, 500)
		_, err := decodePage(strings.NewReader(text), func(dec *jsontext.Decoder) error {
			var item metav1.PartialObjectMetadata
			defer func() { items = append(items, item) }()
			return fastjson.UnmarshalDecode(dec, &item)
		})
		if err != nil || len(items) != 500 {
			b.Fatal(len(items), err)
		}
	}
}

func FuzzDecodePage(f *testing.F) {
	for _, seed := range []string{pageOf("t", "a", "b"), `{"items":null}`, `{"items":[{}]`, `[]`, `{"metadata":{"continue":7}}`, `{}{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		_, err := decodePage(strings.NewReader(text), func(dec *jsontext.Decoder) error {
			n++
			return dec.SkipValue()
		})
		if err == io.EOF {
			t.Error("the end of the input is not told from the end of the list")
		}
		var whole struct {
			Items []json.RawMessage `json:"items"`
		}
		if err == nil && json.Unmarshal([]byte(text), &whole) != nil {
			t.Errorf("%q was taken with %d items", text, n)
		}
	})
}
