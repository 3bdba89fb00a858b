"""Convolutions and pooling of images [N, H, W, C] (channels last), f32.

| module | content |
|---|---|
| `direct` | convolution with one group, of any size: indirect GEMM over input pixels |
| `indirect_gemm` | GEMM whose rows of A are addressed through offsets (indirection) |
| `edges` | rows of outputs whose windows reach beyond the image: taps to leave out |
| `winograd` | Winograd's transforms of input, filter and output for 3 × 3, stride 1 |
| `winograd_product` | the matrix products between Winograd's transforms |
| `depthwise` | depthwise convolution |
| `pooling` | max, mean and global mean pooling |
| `window_loops` | loops over the outputs of depthwise convolution and pooling |
| `window_tiles` | register tiles of outputs for these loops |
| `inverted_bottleneck` | 1 × 1, depthwise and 1 × 1 convolution of MobileNetV2 in one kernel |

What runs when (`gptrs.backends.faer.calls` decides):

| op | kernels |
|---|---|
| convolution, one group | `direct`; padded images are copied band by band into a workspace |
| 3 × 3, stride 1, where faster | input transform, `winograd_product`, output transform: 3 steps |
| depthwise convolution, pooling | `window_loops` with the body of `depthwise` or `pooling` |
| inverted bottleneck | `inverted_bottleneck`, which calls the kernels of the three convolutions |

Winograd needs C and O to be multiples of 16, at most 1024; the sizes of one image decide, so that
an image gives the same bits in every batch. Filters that are parameters are packed once into panels
(`gptrs.kernels.gemm.packing`), for Winograd transformed first. Threads share the extent: bands of
rows times parts of the panels (`direct`), tiles or planes times panels (Winograd), rows of the
result (windows), parts of images (bottlenecks).
"""
