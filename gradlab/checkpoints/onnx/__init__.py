"""ONNX models: recurrent nodes anywhere in the graph, their weights folded to numbers."""
