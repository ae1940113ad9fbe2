package content

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// ProtobufPrefix is what Kubernetes' protobuf begins with (k8s.io/apimachinery/pkg/runtime/serializer/protobuf); a runtime.Unknown follows.
const ProtobufPrefix = "k8s\x00"

// Fields of messages (generated.proto of k8s.io/apimachinery/pkg/runtime and pkg/apis/meta/v1).
const (
	unknownTypeMeta, unknownRaw = 1, 2
	partialMetadata             = 1
	metaUID, metaVersion        = 5, 6
	metaGeneration, metaCreated = 7, 8
	timeSeconds                 = 1
)

// typeOfPartial is the TypeMeta of a PartialObjectMetadata, with its tag.
var typeOfPartial = func() []byte {
	var m []byte
	for i, text := range []string{"meta.k8s.io/v1", "PartialObjectMetadata"} {
		m = protowire.AppendString(protowire.AppendTag(m, protowire.Number(i+1), protowire.BytesType), text)
	}
	return appendMessage(nil, unknownTypeMeta, m)
}()

func appendMessage(dst []byte, field protowire.Number, parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	dst = protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.BytesType), uint64(size))
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

// AppendProtobuf appends the PartialObjectMetadata of the object as Kubernetes' protobuf.
func (c *Content) AppendProtobuf(dst []byte, id Identity) []byte {
	var own, head [128]byte
	identity := id.appendProtobuf(own[:0])
	meta := c.protobuf()
	object := protowire.AppendTag(head[:0], partialMetadata, protowire.BytesType)
	object = protowire.AppendVarint(object, uint64(len(meta)+len(identity)))
	dst = append(append(dst, ProtobufPrefix...), typeOfPartial...)
	return appendMessage(dst, unknownRaw, object, meta, identity)
}

// appendProtobuf appends the fields of an ObjectMeta. What follows the same field of another replaces that.
func (id Identity) appendProtobuf(dst []byte) []byte {
	dst = protowire.AppendString(protowire.AppendTag(dst, metaUID, protowire.BytesType), string(id.UID))
	if id.ResourceVersion != 0 { // a dry run has none
		dst = protowire.AppendString(protowire.AppendTag(dst, metaVersion, protowire.BytesType), strconv.FormatUint(id.ResourceVersion, 10))
	}
	if id.Generation != 0 {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, metaGeneration, protowire.VarintType), uint64(id.Generation))
	}
	var t [16]byte
	created := protowire.AppendVarint(protowire.AppendTag(t[:0], timeSeconds, protowire.VarintType), uint64(id.Created.Unix()))
	return appendMessage(dst, metaCreated, created)
}

// protobuf is the ObjectMeta, without identity. It is made when it is first asked for.
func (c *Content) protobuf() []byte {
	if p := c.proto.Load(); p != nil {
		return *p
	}
	out, err := c.Meta().Marshal()
	if err != nil {
		panic(fmt.Sprintf("encoding what was encoded here: %v", err))
	}
	c.proto.Store(&out)
	return out
}
