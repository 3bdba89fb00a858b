"""torch's operators without a row, and why."""

from __future__ import annotations

_REASONS: dict[str, str] = {
    "draws random numbers: `tests/numpy_api/random` judges distributions": """
        bernoulli cauchy exponential geometric log_normal multinomial native_dropout_backward
        nn.functional.feature_alpha_dropout.with_train nn.functional.fractional_max_pool2d
        nn.functional.fractional_max_pool3d normal normal.in_place normal.number_mean pca_lowrank
        rand_like randint randint_like randn randn_like svd_lowrank uniform
        nn.functional.multi_head_attention_forward
    """,
    "memory without values: nothing to compare": """
        empty empty_like empty_permuted empty_strided new_empty new_empty_strided
    """,
    "writes into its operand: tensors are immutable, x[...] = y is traced": """
        fill put resize_ resize_as_ zero_
    """,
    "strides and storage: arrays have none that a program sees": """
        as_strided as_strided.partial_views as_strided_copy as_strided_scatter chalf conj_physical
        resolve_conj resolve_neg scalar_tensor
    """,
    "a copy, or another name, of an operator that has a row": """
        _chunk_cat _softmax_backward_data _unsafe_masked_index _unsafe_masked_index_put_accumulate
        alias_copy constant_pad_nd diagonal_copy expand_copy narrow_copy permute_copy
        slice split_with_sizes_copy squeeze_copy t_copy torch.ops.aten._safe_softmax.default
        transpose_copy unbind_copy unfold_copy unsafe_chunk unsafe_split unsqueeze_copy view_copy
        log_softmax.with_dtype
    """,
    "gives no tensor": "allclose broadcast_shapes equal hash_tensor item",
    "sparse tensors": "sparse.mm.reduce sparse.sampled_addmm to_sparse",
    "samples of complex numbers alone: `tests/numpy_api` compares them with NumPy": """
        imag istft nn.functional.silu.complex view_as_real
    """,
    "compiles a CUDA kernel from a string": """
        jiterator_2inputs_2outputs jiterator_4inputs_with_extra_args jiterator_binary
        jiterator_binary_return_by_ref jiterator_unary
    """,
    "an internal step of autograd, or of a kernel for one device": """
        _batch_norm_with_update _native_batch_norm_legit _segment_reduce.lengths
        _segment_reduce.offsets _upsample_bilinear2d_aa grid_sampler_2d grid_sampler_3d
        max_pool2d_with_indices_backward native_batch_norm native_group_norm native_layer_norm
        nn.functional.batch_norm.without_cudnn torch._scaled_mm torch._scaled_mm_v2
        torch.ops.aten._efficient_attention_forward torch.ops.aten._flash_attention_forward
    """,
    "signs and order of the factors are free: `tests/numpy_api/test_linalg.py` multiplies them": """
        linalg.eig linalg.eigh linalg.pinv.hermitian linalg.pinv.singular qr svd
        linalg.matrix_rank.hermitian
    """,
    "not offered: factors in LAPACK's packed form; `solve`, `qr`, `cholesky` give results": """
        geqrf linalg.cholesky_ex linalg.householder_product linalg.inv_ex linalg.ldl_factor
        linalg.ldl_factor_ex linalg.ldl_solve linalg.lu linalg.lu_factor linalg.lu_factor_ex
        linalg.lu_solve linalg.solve_ex lu lu_solve lu_unpack ormqr triangular_solve
    """,
    "NumPy's arguments or results, which differ: `tests/numpy_api` compares with it": """
        argsort bincount histogramdd linalg.lstsq linalg.lstsq.grad_oriented linalg.tensorsolve
        linalg.vander nonzero nonzero_static
    """,
    "not offered: sums to a smaller shape are written as x.sum(axis)": "sum_to_size",
    "not offered: half of the transform is `fft.hfft` or `fft.ihfft` along each axis": """
        fft.hfft2 fft.hfftn fft.ihfft2 fft.ihfftn
    """,
    "not offered: windows of a signal are `unfold` and `fft.rfft`": "stft",
    "takes a function: `tests/numpy_api/nn` has the loss with its own distance": """
        nn.functional.triplet_margin_with_distance_loss
    """,
    "not offered: functions of mathematical physics that no user asked for": """
        special.chebyshev_polynomial_t special.chebyshev_polynomial_u
        special.chebyshev_polynomial_v special.chebyshev_polynomial_w special.hermite_polynomial_h
        special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p
        special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u
        special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w
        special.spherical_bessel_j0
    """,
    "not offered: `where=` of the reductions does what masked tensors do": """
        masked.amax masked.amin masked.argmax masked.argmin masked.cumprod masked.cumsum
        masked.log_softmax masked.logaddexp masked.logsumexp masked.mean masked.median masked.norm
        masked.normalize masked.prod masked.softmax masked.softmin masked.std masked.sum masked.var
    """,
    "torch errs by up to 3e-6 in f64: `tests/numpy_api` compares with 30 digits": """
        special.airy_ai special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1
    """,
    "torch errs by 1e-11, and by 2e-5 beside poles: `tests/numpy_api` compares with 90 digits": """
        polygamma.polygamma_n_0 polygamma.polygamma_n_1 polygamma.polygamma_n_2
        polygamma.polygamma_n_3 polygamma.polygamma_n_4 special.polygamma.special_polygamma_n_0
    """,
    "NumPy has no such dtype to compare in": "bfloat16",
    "exponents are integers here, as in NumPy, and numbers in torch": "ldexp",
}

EXCLUDED: dict[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
"""Reasons by the name of the OpInfo."""
