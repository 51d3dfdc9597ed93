(* Choosing the mapping.

   On the full table it composes: the mapping is drawn by an E1-private choice on
   T, then T is sampled afresh. On the sample it does not: a choice that is
   E1-private as a function of the sample, and a crowd whose smallest delta at E2
   is d, together break E1 E2 and d by more than a factor of 1000. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect all_algebra ring ssrZ.
From Incrowd Require Import Binomial Crowd Tables.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.
Delimit Scope Z_scope with coqZ.

Section Composition.
Variable R : realFieldType.

(* Adaptive composition over a finite set of mappings: p, p' are the laws of the
   choice on two neighbours, M g, M' g the probabilities of an event given g. *)
Theorem choice_composes (G : finType) (p p' M M' : G -> R) (E1 E2 d : R) :
    (forall g, 0 <= p g) -> \sum_g p g = 1 -> (forall g, p g <= E1 * p' g) ->
    0 <= E2 -> (forall g, 0 <= M' g) -> (forall g, M g <= E2 * M' g + d) ->
  \sum_g p g * M g <= E1 * E2 * (\sum_g p' g * M' g) + d.
Proof.
move=> p_ge0 p_sum le_p E2_ge0 M'_ge0 le_M.
rewrite -[d in leRHS]mul1r -p_sum mulr_suml mulr_sumr -big_split; apply: ler_sum => g _ /=.
apply: le_trans (ler_wpmul2l (p_ge0 g) (le_M g)) _.
rewrite mulrDr ler_add2r [leRHS](_ : _ = (E1 * p' g) * (E2 * M' g)); last by ring.
by rewrite ler_wpmul2r // mulr_ge0.
Qed.

Section Mechanism.
Variables (I C G : finType) (cell : G -> I -> C) (b : R) (k : nat).
Hypotheses (b_gt0 : 0 < b) (b_lt1 : b < 1).

(* A choice: for every set of people a law on the mappings; E-private if one
   person more or less changes no probability by more than the factor E. *)
Definition choice_private (c : {set I} -> G -> R) (E : R) : Prop :=
  (forall A g, 0 <= c A g) /\ (forall A, \sum_g c A g = 1) /\
  forall (A : {set I}) r g, r \in A -> c A g <= E * c (A :\ r) g /\ c (A :\ r) g <= E * c A g.

(* The mapping is chosen on the table, published, and the table is sampled. *)
Definition on_table c (T : {set I}) (S : G -> pred {ffun C -> nat}) : R :=
  \sum_g c T g * release (cell g) b k T (S g).

(* The table is sampled, and the mapping is chosen on the sample. *)
Definition on_sample (c : {set I} -> G -> R) (T : {set I}) (S : G -> pred {ffun C -> nat}) : R :=
  expect b T (fun A => \sum_g c A g * (S g (seen (cell g) k A))%:R).

Theorem choice_on_the_table c E1 E2 d : 0 <= E2 -> choice_private c E1 -> private b E2 k d ->
  forall (T : {set I}) r S, r \in T ->
    on_table c T S <= E1 * E2 * on_table c (T :\ r) S + d /\
    on_table c (T :\ r) S <= E1 * E2 * on_table c T S + d.
Proof.
move=> E2_ge0 [c_ge0 [c_sum c_E1]] /(one_cell_decides E2 k d b_gt0 b_lt1) tables T r S r_in.
have pos g T' : 0 <= release (cell g) b k T' (S g).
  apply: sumr_ge0 => A _; rewrite mulr_ge0 ?ler0n // mulr_ge0 ?exprn_ge0 ?subr_ge0 // ltW //.
have both g := tables I C I id (cell g) T r (S g) r_in.
by split; apply: choice_composes; rewrite ?c_sum // => g;
  first [exact: c_ge0 | exact: pos | by case: (c_E1 T r g r_in) | by case: (both g)].
Qed.

End Mechanism.
End Composition.

(* ---- The counter-example. ---- *)

(* Expectations at rate 1/10 of whole numbers, by whole numbers: one trial less at a time. *)
Fixpoint fold_trial (l : seq Z) : seq Z :=
  if l is x :: (y :: _) as t then (9 * x + y)%coqZ :: fold_trial t else [::].

Definition tenth (n : nat) (phi : nat -> Z) : Z := head 0%coqZ (iter n fold_trial (mkseq phi n.+1)).

Section CounterExample.
Variable R : realFieldType.

Definition z2r (n : Z) : R := (int_of_Z n)%:~R.

Lemma z2rD m n : z2r (m + n)%coqZ = z2r m + z2r n.
Proof. by rewrite /z2r -intrD -[in RHS]rmorphD. Qed.
Lemma z2rM m n : z2r (m * n)%coqZ = z2r m * z2r n.
Proof. by rewrite /z2r -intrM -[in RHS]rmorphM. Qed.
Lemma z2r_pos p : z2r (Zpos p) = (Pos.to_nat p)%:R.
Proof. by []. Qed.
Lemma z2r_gt0 n : Z.lt 0 n -> 0 < z2r n.
Proof. by case: n => // p _; rewrite z2r_pos ltr0n; apply/ssrnat.ltP/Pos2Nat.is_pos. Qed.

Lemma size_fold_trial l : size (fold_trial l) = (size l).-1.
Proof. by elim: l => // x [|y l] //= IH; rewrite IH. Qed.

Lemma nth_fold_trial l j : (j.+1 < size l)%N ->
  nth 0%coqZ (fold_trial l) j = (9 * nth 0%coqZ l j + nth 0%coqZ l j.+1)%coqZ.
Proof. by elim: l j => // x [|y l] IH [|j] //= lt_j; rewrite IH. Qed.

Local Notation b := (10%:R^-1 : R).

Lemma tenth_mean_seq n l : size l = n.+1 ->
  z2r (head 0%coqZ (iter n fold_trial l)) = 10%:R ^+ n * mean b n (fun j => z2r (nth 0%coqZ l j)).
Proof.
elim: n l => [|n IH] l size_l; first by rewrite mean0 mul1r /=; case: l size_l.
rewrite iterSr IH ?size_fold_trial ?size_l // meanS exprSr -[RHS]mulrA; congr (_ * _).
rewrite mulrDr !mulrA -!meanZ -meanD; apply: eq_bigr => j _; congr (_ * _).
rewrite nth_fold_trial; last by rewrite size_l ltnS.
rewrite z2rD z2rM.
have -> : z2r 9 = 9%:R by [].
by field.
Qed.

Lemma tenthE n phi : z2r (tenth n phi) = 10%:R ^+ n * mean b n (fun j => z2r (phi j)).
Proof.
rewrite /tenth tenth_mean_seq ?size_mkseq //; congr (_ * _); apply: eq_bigr => j _.
by rewrite nth_mkseq.
Qed.

(* Everyone is in one cell, t among them; whoever is chosen, g1 or g2. *)
Local Notation people := 'I_38.
Definition t : people := ord0.

(* u counts how far the sample is from showing t's crowd with t in it. *)
Definition u (A : {set people}) : nat := ((t \notin A) + (#|A :\ t| - 19))%N.
Definition lean (A : {set people}) (g : bool) : R :=
  if g then 2%:R^-1 * 3%:R^-1 ^+ u A else 1 - 2%:R^-1 * 3%:R^-1 ^+ u A.

Lemma u_step (A : {set people}) r : r \in A -> (u A <= (u (A :\ r)).+1)%N /\ (u (A :\ r) <= (u A).+1)%N.
Proof.
move=> r_in; rewrite /u; case: (eqVneq r t) => [eq_rt | neq_rt].
  rewrite eq_rt in r_in *; rewrite !inE eqxx r_in /=.
  have -> : (A :\ t) :\ t = A :\ t by apply/setP => i; rewrite !inE; case: eqP.
  by rewrite add0n add1n; split; rewrite // ltnW.
have -> : (A :\ r) :\ t = (A :\ t) :\ r by apply/setP => i; rewrite !inE andbCA.
have -> : (t \notin A :\ r) = (t \notin A) by rewrite !inE eq_sym neq_rt.
rewrite (cardsD1 r (A :\ t)) !inE neq_rt r_in /= add1n.
split; rewrite -addnS leq_add2l; last by rewrite (leq_trans (leq_sub2r _ (leqnSn _))).
by rewrite leq_subLR addnS ltnS -leq_subLR.
Qed.

Lemma lean_private : choice_private lean 3%:R.
Proof.
have h_gt0 : 0 < 2%:R^-1 :> R by rewrite invr_gt0 ltr0n.
have w_gt0 n : 0 < 3%:R^-1 ^+ n :> R by rewrite exprn_gt0 // invr_gt0 ltr0n.
have w_le1 n : 3%:R^-1 ^+ n <= 1 :> R.
  by rewrite exprn_ile1 ?invr_ge0 ?ler0n // invf_le1 ?ltr0n // ler1n.
have half n : 2%:R^-1 * 3%:R^-1 ^+ n <= 2%:R^-1 :> R.
  by rewrite -[leRHS]mulr1 ler_pmul2l.
have rest n : 2%:R^-1 <= 1 - 2%:R^-1 * 3%:R^-1 ^+ n :> R.
  rewrite ler_subr_addr; apply: le_trans (ler_add (lexx _) (half n)) _.
  by rewrite (_ : 2%:R^-1 + 2%:R^-1 = 1) //; field.
have near m n : (m <= n.+1)%N -> 3%:R^-1 ^+ n <= 3%:R * 3%:R^-1 ^+ m :> R.
  move=> le_mn; rewrite -ler_pdivr_mull ?ltr0n // -exprS.
  by rewrite ler_wiexpn2l ?invr_ge0 ?ler0n // invf_le1 ?ltr0n // ler1n.
have far m n : 1 - 2%:R^-1 * 3%:R^-1 ^+ m <= 3%:R * (1 - 2%:R^-1 * 3%:R^-1 ^+ n) :> R.
  apply: le_trans (_ : 1 <= _); first by rewrite ger_addl oppr_le0 mulr_ge0 // ltW.
  apply: le_trans (ler_wpmul2l (ler0n _ 3) (rest n)).
  by rewrite ler_pdivl_mulr ?ltr0n // mul1r ler_nat.
split; [|split] => [A [] | A | A r g r_in]; rewrite /lean.
- by rewrite mulr_ge0 // ltW.
- by apply: le_trans (rest _); rewrite ltW.
- by rewrite big_bool /= addrCA subrr addr0.
have [le1 le2] := u_step r_in.
by case: g => //; split; rewrite [leRHS]mulrCA ler_pmul2l // near.
Qed.

(* Threshold 20, rate 1/10, 3 for both E's: the crowd itself. *)
Definition d : R := gain b 3%:R 1 20 27.

Lemma crowd_smallest : smallest b 3%:R 20 d.
Proof.
have ten_gt0 : 0 < 10%:R :> R by rewrite ltr0n.
have gammaE : gamma b 3%:R = 7%:R / 10%:R by rewrite /gamma; field.
apply: exact_delta_free_addition.
- by rewrite invr_gt0.
- by rewrite invf_lt1 // ltr1n.
- by rewrite ler1n.
- apply/andP; split; rewrite gammaE.
    by rewrite mulrAC ler_pdivl_mulr // -!natrM ler_nat.
  apply/forallP => m; rewrite mulrAC ltr_pdivr_mulr // -!natrM ltr_nat.
  by apply: leq_ltn_trans (_ : 7 * 27 < _)%N; rewrite // leq_mul2l ltn_ord.
rewrite /gamma invrK (_ : 1 - _ = - (17%:R / 10%:R)); last by field.
by rewrite oppr_le0 divr_ge0 ?ler0n.
Qed.

Definition one_cell (g : bool) (i : people) : unit := tt.
Definition shown_under_g1 (g : bool) (x : {ffun unit -> nat}) : bool := g && (20 <= x tt)%N.

(* The numbers: with t sampled or not, and the two tails. *)
Definition with_t : Z := tenth 37 (fun o => if (19 <= o)%N then Z.pow 3 (Z.of_nat (37 - o)) else 0%coqZ).
Definition without_t : Z := tenth 37 (fun o => if (20 <= o)%N then Z.pow 3 (Z.of_nat (37 - o)) else 0%coqZ).
Definition tail_28 : Z := tenth 28 (fun j => if (20 <= j)%N then 1%coqZ else 0%coqZ).
Definition tail_27 : Z := tenth 27 (fun j => if (20 <= j)%N then 1%coqZ else 0%coqZ).

Lemma computed :
  Z.lt 0 (with_t - 27 * without_t - 20 * 1000 * Z.pow 3 (Z.of_nat 18) * Z.pow 10 (Z.of_nat 9) * (tail_28 - 30 * tail_27))%coqZ.
Proof. by vm_compute. Qed.

Theorem choice_on_the_sample_fails :
  choice_private lean 3%:R /\ smallest b 3%:R 20 d /\
  3%:R * 3%:R * on_sample one_cell b 20 lean ([set: people] :\ t) shown_under_g1 + 1000%:R * d
    < on_sample one_cell b 20 lean [set: people] shown_under_g1.
Proof.
split; first exact: lean_private; split; first exact: crowd_smallest.
pose f (A : {set people}) : R := 2%:R^-1 * (3%:R^-1 ^+ u A * (20 <= #|A|)%N%:R).
have onE T : on_sample one_cell b 20 lean T shown_under_g1 = expect b T f.
  apply: expect_ext => A _; rewrite big_bool /= mulr0 addr0 ffunE /f mulrA; congr (_ * _%:R).
  have -> : part (one_cell true) A tt = A by apply/setP => i; rewrite !inE andbT.
  by rewrite /published; case: ifP => // ->.
have card_37 : #|[set: people] :\ t| = 37%N.
  by have := cardsD1 t [set: people]; rewrite inE cardsT card_ord add1n => -[].
have by_card phi : expect b ([set: people] :\ t) (fun A => phi #|A|) = mean b 37 phi.
  by rewrite expect_card card_37.
pose low := mean b 37 (fun o => 3%:R^-1 ^+ (o - 19) * (20 <= o)%N%:R).
pose high := mean b 37 (fun o => 3%:R^-1 ^+ (o - 19) * (19 <= o)%N%:R).
have absent : expect b ([set: people] :\ t) f = 2%:R^-1 * (3%:R^-1 * low).
  rewrite -!meanZ -by_card; apply: expect_ext => A; rewrite subsetD1 => /andP [_ notin].
  rewrite /f /u notin /= add1n exprS -mulrA; congr (_ * (_ * (_ ^+ (_ - _) * _))).
  by apply: eq_card => i; rewrite !inE; case: eqP => // ->; rewrite (negbTE notin).
have present : expect b ([set: people] :\ t) (fun A => f (t |: A)) = 2%:R^-1 * high.
  rewrite -!meanZ -by_card; apply: expect_ext => A; rewrite subsetD1 => /andP [_ notin].
  by rewrite /f /u !inE eqxx setU1K // cardsU1 notin.
rewrite !onE (expect_rec _ _ (in_setT t)) present absent.
have cube n m : (m <= n)%N -> 3%:R ^+ n * 3%:R^-1 ^+ m = 3%:R ^+ (n - m) :> R.
  by move=> le_mn; rewrite -{1}(subnK le_mn) exprD exprVn mulfK // expf_neq0 // pnatr_eq0.
have powers p o : z2r (Z.pow (Zpos p) (Z.of_nat o)) = (Pos.to_nat p)%:R ^+ o.
  elim: o => // o IH; rewrite Nat2Z.inj_succ Z.pow_succ_r ?z2rM ?IH ?exprS //; exact: Nat2Z.is_nonneg.
have lists m : (19 <= m)%N ->
    z2r (tenth 37 (fun o => if (m <= o)%N then Z.pow 3 (Z.of_nat (37 - o)) else 0%coqZ))
    = 10%:R ^+ 37 * (3%:R ^+ 18 * mean b 37 (fun o => 3%:R^-1 ^+ (o - 19) * (m <= o)%N%:R)).
  move=> le_m; rewrite tenthE; congr (_ * _); rewrite -meanZ; apply: eq_bigr => o _; congr (_ * _).
  case: leqP => [le_mo | _]; last by rewrite !mulr0.
  have le_o := leq_trans le_m le_mo.
  rewrite (powers 3%positive) mulr1 cube; last by rewrite leq_subLR -ltnS.
  by congr (_ ^+ _); rewrite subnBA // addnC.
have tails n : z2r (tenth n (fun j => if (20 <= j)%N then 1%coqZ else 0%coqZ)) = 10%:R ^+ n * tail b 20 n.
  by rewrite tenthE; congr (_ * _); apply: eq_bigr => j _; case: leqP.
have sub (m n : Z) : z2r (m - n)%coqZ = z2r m - z2r n.
  by rewrite -[in RHS](Z.sub_add n m) z2rD addrK.
have eW : z2r with_t = 10%:R ^+ 37 * (3%:R ^+ 18 * high) by rewrite /with_t lists.
have eV : z2r without_t = 10%:R ^+ 37 * (3%:R ^+ 18 * low) by rewrite /without_t lists.
have eX : z2r tail_28 = 10%:R ^+ 28 * tail b 20 28 by rewrite /tail_28 tails.
have eY : z2r tail_27 = 10%:R ^+ 27 * tail b 20 27 by rewrite /tail_27 tails.
have e10 : z2r (Z.pow 10 (Z.of_nat 9)) = 10%:R ^+ 9 by rewrite (powers 10%positive).
have e3 : z2r (Z.pow 3 (Z.of_nat 18)) = 3%:R ^+ 18 by rewrite (powers 3%positive).
move: computed eW eV eX eY e10 e3; move: with_t without_t tail_28 tail_27 => W V X Y.
move: (Z.pow 10 (Z.of_nat 9)) (Z.pow 3 (Z.of_nat 18)) => p10 p3 lt0 eW eV eX eY e10 e3.
have := z2r_gt0 lt0.
rewrite !(sub, z2rM) eW eV eX eY e10 e3.
have -> : z2r 27 = 27%:R by [].
have -> : z2r 20 = 20%:R by [].
have -> : z2r 30 = 30%:R by [].
have -> : z2r 1000 = 1000%:R by rewrite z2r_pos; congr _%:R.
have -> : 10%:R ^+ 37 = 10%:R ^+ 9 * (10%:R * 10%:R ^+ 27) :> R by rewrite -exprS -exprD.
have -> : 10%:R ^+ 28 = 10%:R * 10%:R ^+ 27 :> R by rewrite -exprS.
rewrite -(subr_gt0 (_ + _)) /d /gain addn1.
have u_gt0 x n : 0 < x.+1%:R ^+ n :> R by rewrite exprn_gt0 // ltr0n.
clearbody low high; move: (tail b 20 28) (tail b 20 27) => t28 t27.
move: (10%:R ^+ 9) (10%:R ^+ 27) (3%:R ^+ 18) (u_gt0 9%N 9%N) (u_gt0 9%N 27%N) (u_gt0 2%N 18%N).
move=> u9 u27 u18 u9_gt0 u27_gt0 u18_gt0 big.
have c_gt0 : 0 < u9 * (10%:R * u27) * u18 * 20%:R by rewrite !mulr_gt0 ?ltr0n.
rewrite -(pmulr_rgt0 _ c_gt0); apply: lt_le_trans big _; rewrite le_eqVlt; apply/orP; left; apply/eqP.
by field.
Qed.

End CounterExample.
